"""The graph that a member of an archive is named after. Pure."""

import re
from urllib.parse import quote, unquote

_ABSOLUTE = re.compile(r'https?://[^\x00-\x20<>"{}|^`\\/?#]+[^\x00-\x20<>"{}|^`\\]*', re.IGNORECASE)
_ENCODED = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*%3A", re.IGNORECASE)


def member_graph(name: str) -> str | None:
    """The http(s) IRI that a name spells, percent-encoded: `http%3A%2F%2Fa%2Fb` is `http://a/b`.

    Folders before it do not matter. A suffix belongs to the IRI, which may end with one itself.
    """
    spelled = name.rpartition("/")[2]
    if not _ENCODED.match(spelled):
        return None
    graph = unquote(spelled, errors="replace")
    return graph if _ABSOLUTE.fullmatch(graph) and "\ufffd" not in graph else None


def stand_in(url: str, name: str) -> str | None:
    """The graph of a name that is encoded like an IRI, but spells none of http(s)."""
    spelled = name.rpartition("/")[2]
    if not _ENCODED.match(spelled) or member_graph(name):
        return None
    return f"{url.partition('#')[0]}#{quote(spelled, safe='%')}"
