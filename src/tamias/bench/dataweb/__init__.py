"""A Data Web as the ORCA benchmark builds it, on loopback addresses, and what crawlers make of it.

`plan` draws the nodes, `web` fills them, `serving` serves, `experiment` lets crawlers loose, `report` tells.
"""
