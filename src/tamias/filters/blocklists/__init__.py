"""Block lists: hosts, domains, addresses and patterns that others say are not worth or not safe to visit.

`formats` reads lines, `files` finds the lists of a folder, `table` holds them, `filter` asks.
"""
