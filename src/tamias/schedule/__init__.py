"""When a resource is visited again: how often it changes, what a visit is worth, how the budget is shared.

Pure rules and values: nothing here reads a clock, a database or a random number.
"""
