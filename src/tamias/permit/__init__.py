"""The permit step: whether a URL may be fetched, from which address, and how soon.

Pure rules only: nothing here reads a socket, a file or a clock.
"""
