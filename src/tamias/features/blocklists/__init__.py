"""Block lists: hosts, domains, addresses and patterns that others say are not worth or not safe to visit.

`formats` reads lines, `files` finds the lists of a folder, `table` holds them, `filter` asks.
"""

from tamias.plugins import Feature

FEATURE = Feature(
    name="blocklists",
    about="refuses URLs that are on block lists, and notices when a list has changed",
    module=__name__,
    filters={"blocklist": f"{__name__}.filter:blocklist_filter"},
)
