"""Bits for why links of a visit were not followed, or a URL was not requested, stored in the frontier.

What was cut for a reason can be opened again when that reason is gone.
"""

DEPTH = 1
"""Links lay beyond the depth limit."""
SCOPE = 2
FILTER = 4
PRIVATE = 8
"""The address may not be connected to."""
ROBOTS = 16
BELOW = 32
"""Links were followed while a depth limit was set: what lies below them may have been cut.

They are not stored with the page, so a shorter way to it can only be passed on by reading it again.
"""
TRAP = 256
"""The host has used up its budget of visits, or its pages are all alike."""
LISTED = 128
"""The sitemaps of the host list more than they may add."""
REOPENED = 64
"""Due once more although it was visited: its body is to be read again, whatever is known of it."""

WIDENED = 512
"""Due once more because the user allows more than before, or asked for it: then it counts as a visit."""

BY_DEPTH = DEPTH | BELOW
"""A URL with one of these is visited again when a shorter way to it is found."""

REASONS = {
    "depth": DEPTH,
    "scope": SCOPE,
    "filter": FILTER,
    "private": PRIVATE,
    "robots": ROBOTS,
    "sitemaps": LISTED,
    "trap": TRAP,
}
