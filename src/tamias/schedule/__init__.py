"""The schedule of visits: how often a resource changes, what a visit is worth, how a budget is shared.

Pure rules and values: nothing here reads a clock, a database or a random number.
"""
