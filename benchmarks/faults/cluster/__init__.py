"""Faults of a cluster: a crawl on a real Citus, by workers beside it and by far ones, while something breaks.

`trial` has the machines and judges what they did, `table` says what breaks.
"""
