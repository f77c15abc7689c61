"""The words of links: what is clicked on, and what stands before and after it in the same paragraph."""

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

from tamias.model.finding import Links, Worded, Words

LONGEST_ANCHOR = 200
LONGEST_CONTEXT = 200
LONGEST_LANGUAGE = 35
MOST_ANCHORS = 5000
_NEAR = 4 * LONGEST_CONTEXT
"""Characters that are looked at for a context: spaces may be many."""
_BREAK = "\x1e"
"""Between two paragraphs."""
_INLINE = frozenset(
    b"a abbr b bdi bdo big cite code del dfn em font i img ins kbd mark q s samp small span strike strong sub"
    b" sup time tt u var wbr".decode().split()
)
_SILENT = frozenset({"script", "style", "noscript", "template", "textarea", "title", "svg"})
_UNBROKEN = _INLINE | _SILENT
_LEAVES = _SILENT | {"-text"}
_SPACE = re.compile(r"\s+")


def anchored(page: LexborHTMLParser) -> dict[str, Words]:
    """The words of a page's links, by their references as they stand."""
    if page.body is None:
        return {}
    text, spans = _read(page.body)
    language = _language(page.root.attrs.get("lang") if page.root else None)
    found: dict[str, Words] = {}
    for reference, start, end, its_language in spans:
        before = found.get(reference)
        if before is not None and before.anchor:
            before.count += 1
            continue
        found[reference] = Words(
            anchor=_plain(text[start : min(end, start + _NEAR)])[:LONGEST_ANCHOR],
            left=_plain(text[max(0, start - _NEAR) : start].rpartition(_BREAK)[2])[-LONGEST_CONTEXT:],
            right=_plain(text[end : end + _NEAR].partition(_BREAK)[0])[:LONGEST_CONTEXT],
            language=_language(its_language) or language,
            count=before.count + 1 if before else 1,
        )
    return found


def links_with_words(links: Links, words: dict[str, Words]) -> Links:
    """The same links, with their words."""
    return Links(Worded(links.references, words), links.base, links.kind)


Span = tuple[str, int, int, str | None]
"""A reference, from where to where its anchor stands in the text, and the language it names."""


def _read(body: LexborNode) -> tuple[str, list[Span]]:
    """Return the text of the body and the spans of its links, without recursion: pages may be deep."""
    pieces: list[str] = []
    spans: list[Span] = []
    length = 0
    stack: list[tuple[LexborNode, int, bool]] = [(body, 0, False)]
    while stack and len(spans) < MOST_ANCHORS:
        node, start, leaving = stack.pop()
        tag = node.tag or ""
        if tag == "-text":
            piece = node.text_content or ""
        else:
            piece = "" if tag in _UNBROKEN or tag.startswith("-") else _BREAK
        if leaving and tag in ("a", "area"):
            attributes = node.attrs
            reference = (attributes.get("href") or "").strip()
            if reference:
                spans.append((reference, start, length, attributes.get("hreflang")))
        pieces.append(piece)
        length += len(piece)
        if not leaving and tag not in _LEAVES:
            stack.append((node, length, True))
            child = node.last_child
            while child is not None:
                stack.append((child, 0, False))
                child = child.prev
    return "".join(pieces), spans


def _plain(text: str) -> str:
    return _SPACE.sub(" ", text.replace(_BREAK, " ").replace("\0", "")).strip()


def _language(attribute: str | None) -> str | None:
    """A language tag in lower case.

    >>> _language(" fr-CA ")
    'fr-ca'
    """
    return (attribute or "").strip().lower()[:LONGEST_LANGUAGE] or None
