"""Real servers that nobody here wrote, each started on the loopback address for as long as a block lasts.

One file for each; `NotRun` says why one cannot be had on this machine.
"""
