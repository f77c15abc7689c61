"""RSS 2.0 and Atom as sitemaps: the addresses of their entries, and when those changed."""

from tamias.analyse.sitemaps.contents import Gathered
from tamias.analyse.sitemaps.elements import Element
from tamias.analyse.sitemaps.urlset import lastmod_ms
from tamias.model.site import Hint

_ENTRIES = frozenset({"item", "entry"})
_DATES = ("updated", "modified", "pubdate", "date", "published", "issued")
"""The first that is there counts: when it changed comes before when it appeared."""

_NO_CONTENT = frozenset({"self", "edit", "edit-media", "hub", "search", "replies"})
"""Relations that lead to the feed itself, to its machinery, or to talk."""


def read_entry(root: Element, entry: Element, gathered: Gathered) -> None:
    """Read a child of the feed, or of the channel."""
    base = _based(entry, _based(root, None, gathered), gathered)
    if entry.name == "link":
        _take(entry, base, gathered)
    elif entry.name in _ENTRIES:
        _read_item(entry, base, gathered)


def _read_item(entry: Element, base: str | None, gathered: Gathered) -> None:
    dates = {child.name: child for child in reversed(entry.children) if child.name in _DATES and child.text}
    date = next((dates[name] for name in _DATES if name in dates), None)
    changed = lastmod_ms(date, gathered)
    found = False
    for child in entry.children:
        if child.name in ("link", "enclosure", "content"):
            url = _take(child, _based(child, base, gathered), gathered)
            found = found or url is not None
            if url and child.name == "link":
                gathered.hint(Hint(url=url, lastmod_ms=changed))
    if not found:
        _take_permanent_name(entry, base, changed, gathered)


def _take(link: Element, base: str | None, gathered: Gathered) -> str | None:
    reference = _reference(link)
    if not reference or link.attributes.get("rel", "alternate").lower() in _NO_CONTENT:
        return None
    url = gathered.address(reference, link.line, base)
    if url is not None:
        gathered.page(url)
    return url


def _reference(link: Element) -> str:
    if link.name == "enclosure":
        return link.attributes.get("url", "").strip()
    if link.name == "content":
        return link.attributes.get("src", "").strip()
    return link.attributes.get("href", link.text).strip()


def _take_permanent_name(entry: Element, base: str | None, changed: int | None, gathered: Gathered) -> None:
    """RSS has items without a link whose `guid` is one."""
    name = next((child for child in entry.children if child.name == "guid"), None)
    if name is None or name.attributes.get("ispermalink") == "false":
        return
    url = gathered.address(name.text, name.line, base)
    if url is not None:
        gathered.page(url)
        gathered.hint(Hint(url=url, lastmod_ms=changed))


def _based(element: Element, base: str | None, gathered: Gathered) -> str | None:
    """Return the base of references in an element, by its `xml:base`."""
    own = element.attributes.get("base", "").strip()
    return gathered.address(own, element.line, base) or base if own else base
