"""Licences of Really Simple Licensing (RSL 1.0): the uses of a URL that none of them allows for nothing.

Pure. A licence that asks for a payment, or is for some users or countries only, is one that we do not have.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from tamias.permit.robots import canonical_path, canonical_pattern, literal_pattern, matches, path_of

if TYPE_CHECKING:
    from lxml import etree

MOST_BYTES = 1 << 20
MOST_CONTENTS = 10_000
USES = ("search", "ai-train", "ai-input")
"""The uses that an archive withholds content from."""
_SPACE = "{https://rslstandard.org/rsl}"
_FREE = frozenset({"free", "attribution"})
_ALL = frozenset({"all", "ai-all"})


class LicensedContent(msgspec.Struct, frozen=True):
    """Content of a host, by the pattern of its path, and the uses that are not free."""

    pattern: str
    refused: tuple[str, ...]


def licensed_content(body: bytes, origin: str) -> tuple[LicensedContent, ...]:
    """Return what a licence file says of the content of a host; what makes no sense is passed over.

    >>> licence = b'<license><prohibits type="usage">ai-train</prohibits></license>'
    >>> rsl = b'<rsl xmlns="https://rslstandard.org/rsl"><content url="/a/">%s</content></rsl>' % licence
    >>> licensed_content(rsl, "https://example.org")
    (LicensedContent(pattern='/a/', refused=('ai-train',)),)
    """
    from lxml import etree  # most hosts have no licence

    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
    try:
        root = etree.fromstring(body, parser) if len(body) <= MOST_BYTES else None
    except (etree.XMLSyntaxError, ValueError):
        root = None
    if root is None or root.tag != f"{_SPACE}rsl":
        return ()
    return tuple(_contents(root.findall(f"{_SPACE}content")[:MOST_CONTENTS], origin))


def is_licence(body: bytes) -> bool:
    """Return whether a file may be a licence, by its namespace."""
    return _SPACE[1:-1].encode() in body[:MOST_BYTES]


def refused_uses(contents: Sequence[LicensedContent], url: str) -> tuple[str, ...]:
    """Return the uses of a URL that are refused; of the patterns that match, the longest decide."""
    path = canonical_path(path_of(url))
    found = [each for each in contents if matches(path, each.pattern)]
    longest = max((len(each.pattern) for each in found), default=0)
    refused = {use for each in found if len(each.pattern) == longest for use in each.refused}
    return tuple(use for use in USES if use in refused)


def _contents(elements: Sequence["etree._Element"], origin: str) -> Iterator[LicensedContent]:
    for element in elements:
        path = (element.get("url") or "").strip()
        path = (path.removeprefix(origin) or "/") if path.startswith(origin) else path
        licences = element.findall(f"{_SPACE}license")
        if path.startswith("/") and licences:
            refused = tuple(use for use in USES if not any(_allows(each, use) for each in licences))
            yield LicensedContent(canonical_pattern(literal_pattern(path)), refused)


def _allows(licence: "etree._Element", use: str) -> bool:
    """Return whether a licence allows a use to anybody, anywhere and for nothing."""
    words = {use, "all"} if use == "search" else {use, *_ALL}
    payments = [
        each.get("type", "use" if len(each) else "free") for each in licence.findall(f"{_SPACE}payment")
    ]
    permits = _words(licence, "permits", "usage")
    return (
        all(each in _FREE for each in payments)
        and not any(_words(licence, "permits", kind) for kind in ("user", "geo"))
        and (not permits or not words.isdisjoint(permits))
        and words.isdisjoint(_words(licence, "prohibits", "usage"))
    )


def _words(licence: "etree._Element", name: str, kind: str) -> set[str]:
    found = [each for each in licence.findall(f"{_SPACE}{name}") if each.get("type", "usage") == kind]
    return {word for each in found for word in (each.text or "").lower().replace(",", " ").split()}
