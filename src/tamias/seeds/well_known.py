"""Well-known addresses: where something worth knowing may stand on a host; each is asked once.

A server that answers everything with a page must not pass for a portal, so each address has its proof.
"""

import re
from collections.abc import Callable

import msgspec

from tamias.content.formats import is_rdf
from tamias.model.kind import SITEMAP
from tamias.model.url import authority, resolve

MOST_PLACES = 6
"""Requests that a host nobody has asked for anything special has to bear."""

HEAD = 65_536
"""How many first bytes of an answer a proof may look at."""

_SITEMAP_ROOT = re.compile(rb"<(?:[\w.-]+:)?(?:urlset|sitemapindex|rss|feed)[\s>]")
_PACKED = b"\x1f\x8b"
_CATALOGUE = re.compile(
    rb'project-open-data|"@?type"\s*:\s*"dcat:Catalog"|"dataset"\s*:\s*\[\s*(?:\{\s*"|\])',
)
_LINKSET = re.compile(rb'"linkset"\s*:\s*\[')
_RESERVATION = re.compile(rb'"location"\s*:.*"tdm-reservation"|"tdm-reservation"\s*:.*"location"', re.DOTALL)

_RULE_LINE = re.compile(rb"^\s*(?:dis)?allow\s*:", re.IGNORECASE | re.MULTILINE)

TDMREP = "tdmrep"
AI_TXT = "ai-txt"
USAGE_FILES = frozenset({TDMREP, AI_TXT})
"""What is kept for those who ask what a site says about the use of its content."""


class WellKnown(msgspec.Struct, frozen=True):
    """An address to try, and what it is if its proof holds."""

    url: str
    kind: str | None
    """None for what is read like any document."""


def well_known_urls(origin: str, has_sitemaps: bool) -> list[WellKnown]:
    """The places to try on a host. Where robots.txt told of sitemaps, none is guessed.

    >>> [place.kind for place in well_known_urls("https://example.org/a", has_sitemaps=True)]
    [None, 'data-json', None, 'tdmrep', 'ai-txt']
    """
    root = authority(origin) + "/"
    return [
        WellKnown(resolve(path, root), kind)
        for path, (kind, _proof) in _PLACES.items()
        if not (has_sitemaps and kind == SITEMAP)
    ][:MOST_PLACES]


def kind_there(url: str) -> str | None:
    """Return the kind of document at a well-known address; None if it is read like any other."""
    kind, _proof = _PLACES.get(url.removeprefix(authority(url)), (None, _nothing))
    return kind


def stands_there(url: str, media_type: str | None, head: bytes) -> bool:
    """Return whether what came from a well-known address is what one looks for there.

    `media_type` is what was found, not what was told; `head` are the first bytes, up to `HEAD`.
    """
    _kind, proof = _PLACES.get(url.removeprefix(authority(url)), (None, _nothing))
    return proof(media_type or "", head[:HEAD])


def _is_json(head: bytes, sign: re.Pattern[bytes]) -> bool:
    is_json = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")
    return is_json and bool(sign.search(head))


def _nothing(_media_type: str, _head: bytes) -> bool:
    return False


_PLACES: dict[str, tuple[str | None, Callable[[str, bytes], bool]]] = {
    "/sitemap.xml": (
        SITEMAP,
        lambda kind, head: (
            head.startswith(_PACKED) or ("html" not in kind and bool(_SITEMAP_ROOT.search(head)))
        ),
    ),
    "/.well-known/void": (None, lambda kind, head: is_rdf(kind) and b"rdfs.org/ns/void#" in head),
    "/data.json": ("data-json", lambda _, head: _is_json(head, _CATALOGUE)),
    "/.well-known/api-catalog": (
        None,
        lambda kind, head: kind == "application/linkset" or _is_json(head, _LINKSET),
    ),
    "/.well-known/tdmrep.json": (TDMREP, lambda _, head: _is_json(head, _RESERVATION)),
    "/ai.txt": (AI_TXT, lambda kind, head: "html" not in kind and bool(_RULE_LINE.search(head))),
}
"""The kind of what stands there, and its proof by the media type that was found and by its first bytes."""
