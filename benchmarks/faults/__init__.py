"""Faults on purpose, F1 to F23: each breaks one thing and holds one figure against the promised one.

`machine` has the processes, `inside` what is broken within one, `experiments` the faults, `run` their table.
"""
