"""A hostile web: one server with an endpoint for each attack H1 to H29, among good sites.

Runs in a network namespace of its own, where private addresses are really forbidden and watched.
"""
