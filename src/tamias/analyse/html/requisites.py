"""Requisites of a page or a style sheet: images, styles and scripts that it needs to be shown."""

import re
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

from tamias.content.formats import read_by
from tamias.model.document import Document
from tamias.model.finding import Finding, Links
from tamias.model.kind import REQUISITE

MOST_REQUISITES = 1000
"""Of one page."""
MOST_BYTES = 2 << 20
"""Of a style sheet that are read."""
_NEEDING = (
    "img,source[srcset],input[src],script[src],video[poster],embed[src],object[data],link[href],style,"
    "[background],[style]"
)
_ATTRIBUTES = {
    "img": ("src",),
    "input": ("src",),
    "script": ("src",),
    "video": ("poster",),
    "embed": ("src",),
    "object": ("data",),
}
_NEEDED_LINKS = frozenset(
    {"stylesheet", "icon", "mask-icon", "apple-touch-icon", "manifest", "modulepreload"}
)
_CSS = re.compile(
    r"""url\(\s*(?:"([^"\n]{1,2000})"|'([^'\n]{1,2000})'|([^\s"'()]{1,2000}))\s*\)"""
    r"""|@import\s+(?:"([^"\n]{1,2000})"|'([^'\n]{1,2000})')""",
    re.IGNORECASE,
)
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_NOWHERE = ("#", "javascript:", "data:", "blob:", "about:")


def requisites(page: LexborHTMLParser, base: str) -> Links:
    """Return the requisites of a page, each once, in its order."""
    found: dict[str, None] = {}
    for node in page.css(_NEEDING):
        for reference in _of_node(node):
            if reference and not reference.lower().startswith(_NOWHERE):
                found[reference] = None
        if len(found) >= MOST_REQUISITES:
            break
    return Links(list(found)[:MOST_REQUISITES], base, REQUISITE)


def _of_node(node: LexborNode) -> Iterator[str]:
    tag, attributes = node.tag or "", node.attrs
    for name in _ATTRIBUTES.get(tag, ()):
        yield (attributes.get(name) or "").strip()
    if tag in ("img", "source"):
        yield from _in_set(attributes.get("srcset") or "")
    if tag == "link" and not _NEEDED_LINKS.isdisjoint((attributes.get("rel") or "").lower().split()):
        yield (attributes.get("href") or "").strip()
    if tag == "style":
        yield from in_styles(node.text())
    yield from in_styles(attributes.get("style") or "")
    yield (attributes.get("background") or "").strip()


def _in_set(attribute: str) -> Iterator[str]:
    """The addresses of a `srcset`."""
    for candidate in attribute[:10_000].split(", "):
        yield candidate.strip().partition(" ")[0].strip(",")


def in_styles(text: str) -> Iterator[str]:
    """The addresses that styles name.

    >>> list(in_styles("@import 'a.css'; p { background: url( b.png ) } /* url(c) */"))
    ['a.css', 'b.png']
    """
    if "url(" not in text.lower() and "@import" not in text.lower():
        return
    for found in _CSS.finditer(_COMMENT.sub(" ", text[:MOST_BYTES])):
        yield next(each for each in found.groups() if each).strip()


class StyleAnalyser:
    """Reads style sheets, for what they need."""

    media_types = read_by(__name__)

    def __init__(self, *, requisites: bool = False) -> None:
        self._wanted = requisites

    def analyse(self, document: Document) -> Iterator[Finding]:
        """Yield the requisites of a style sheet, if they are wanted."""
        if self._wanted:
            text = document.stream.read(MOST_BYTES).decode("utf-8", "replace")
            names = dict.fromkeys(name for name in in_styles(text) if not name.lower().startswith(_NOWHERE))
            yield Links(list(names)[:MOST_REQUISITES], document.base, REQUISITE)
