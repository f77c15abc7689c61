"""A Data Web as the ORCA benchmark builds it, on loopback addresses, and what crawlers make of it.

`web` draws and fills it, `serving` serves it, `trial` lets one of the `crawlers` loose, `report` tells.
"""
