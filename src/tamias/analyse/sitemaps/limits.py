"""How far a sitemap is followed: what the sitemap protocol allows, and no more."""

from tamias.analyse.limits import MIB

MAX_TOKEN = MIB
"""A tag or comment of more bytes than this is not waited for: expat begins it anew with every chunk."""

MAX_TEXT = 8192
"""Characters kept of the text of one element."""

MAX_CHILDREN = 20_000
"""Elements kept of one entry, such as the parts of a dump."""

MAX_NAMESPACES = 100
"""Prefixes declared by one element; each scope has its own table."""
