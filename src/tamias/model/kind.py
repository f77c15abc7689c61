"""The kind of an address: what is known of it before it is asked, such as that it is a SPARQL endpoint.

An ordinary address has none. A kind travels with an item as the tag `kind=NAME`.
"""

from collections.abc import Iterable
from functools import lru_cache

_TAG = "kind="
_FORMAT = "format="

SITEMAP = "sitemap"
PROBE = "probe"
"""A well-known address where something may stand; that nothing does is no news."""
CONTEXT = "context"
"""A JSON-LD context that a document asked for."""

ROBOTS = "robots"
"""A file to which the robots.txt of another queue redirects: asked for in the turn of its own host."""

REFRESH = "refresh"
"""Not a kind of address: what a page sends its readers on to, as deep as the page itself."""

REQUISITE = "requisite"
"""Not a kind of address: what a page needs to be shown, as deep as the page itself. Also the tag of it."""

DUMP = "dump"
"""A part of a dataset that a site offers as a whole."""

AUXILIARY = frozenset({PROBE, CONTEXT, ROBOTS})
"""What nobody asked for: it is visited for the sake of others, and counts nowhere."""

_HINTS = frozenset({SITEMAP, PROBE})


def kind_tag(kind: str) -> str:
    """The tag by which an item says its kind.

    >>> kind_tag("sparql")
    'kind=sparql'
    """
    return _TAG + kind


def kind_key(key: str, kind: str | None) -> str:
    """The key of a URL of some kind: an endpoint may be known as a page and yet not as an endpoint.

    What a kind only hints at is the same document either way.

    >>> kind_key("http://example.org/sparql", "sparql")
    'sparql http://example.org/sparql'
    >>> kind_key("http://example.org/sitemap.xml", "sitemap")
    'http://example.org/sitemap.xml'
    """
    return key if kind is None or kind in _HINTS else f"{kind} {key}"


@lru_cache(maxsize=4096)  # every stage asks, and nearly all URLs have the same tags
def kind_of(tags: tuple[str, ...]) -> str | None:
    """The kind that tags name; None for an ordinary address.

    >>> kind_of(("person", "kind=ckan"))
    'ckan'
    """
    for tag in tags:
        if tag.startswith(_TAG):
            return tag.removeprefix(_TAG)
    return None


def format_tag(media_type: str) -> str:
    """The tag by which an item says which format is expected.

    >>> format_tag("text/csv")
    'format=text/csv'
    """
    return _FORMAT + media_type


def format_in(tags: Iterable[str]) -> str | None:
    """The format that is expected: a media type or a short name, as it was given."""
    for tag in tags:
        if tag.startswith(_FORMAT):
            return tag.removeprefix(_FORMAT)
    return None
