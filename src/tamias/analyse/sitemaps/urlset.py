"""The entries of `urlset` and `sitemapindex`, with those of ResourceSync, which has the same shape."""

from typing import Final

from tamias.analyse.sitemaps.elements import Element
from tamias.analyse.sitemaps.gathered import Gathered
from tamias.analyse.sitemaps.values import change_frequency, sha256_of, share, time_ms
from tamias.model.site import Hint

PROTOCOL: Final = "http://www.sitemaps.org/schemas/sitemap/0.9"
RESOURCE_SYNC: Final = frozenset({"http://www.openarchives.org/rs/terms/"})

_UPWARDS = frozenset({"up", "index", "resourcesync"})
"""Relations of a ResourceSync document to others of its kind."""


def own_spaces(root: Element) -> frozenset[str]:
    """The namespaces of a sitemap's own words: whatever its root has, for several are in use."""
    return frozenset({root.space, PROTOCOL, ""})


def read_entry(root: Element, entry: Element, gathered: Gathered) -> None:
    """One child of the root."""
    spaces = own_spaces(root)
    if entry.space in spaces and entry.name in ("url", "sitemap"):
        _read_url(entry, spaces, gathered)
    elif entry.space in RESOURCE_SYNC and entry.name == "ln":
        _read_link(entry, _UPWARDS, gathered)


def _read_url(entry: Element, spaces: frozenset[str], gathered: Gathered) -> None:
    loc = entry.child("loc", spaces)
    url = gathered.address(loc.text if loc else "", loc.line if loc else entry.line)
    if url is None:
        return
    told = entry.child("md", RESOURCE_SYNC)
    about = told.attributes if told else {}
    if entry.name == "sitemap" or "capability" in about:
        gathered.sitemap(url)
    elif about.get("change") == "deleted":
        gathered.count()  # the hint is enough to look again at what is known
    else:
        gathered.page(url)
    gathered.hint(_hint(url, entry, spaces, about, gathered))
    for child in entry.children:
        if child.space in RESOURCE_SYNC and child.name == "ln":
            _read_link(child, frozenset({"describedby"}), gathered)


def _hint(
    url: str, entry: Element, spaces: frozenset[str], about: dict[str, str], gathered: Gathered
) -> Hint:
    said = {child.name: child for child in entry.children if child.text and child.space in spaces}
    return Hint(
        url=url,
        lastmod_ms=lastmod_ms(said["lastmod"], gathered)
        if "lastmod" in said
        else time_ms(about.get("datetime", "")),
        changefreq=changefreq(said.get("changefreq"), gathered),
        priority=_priority(said.get("priority"), gathered),
        sha256=sha256_of(about.get("hash", "")),
    )


def lastmod_ms(element: Element | None, gathered: Gathered) -> int | None:
    """The time that an element tells, if it does."""
    if element is None:
        return None
    return gathered.sensible("date", time_ms(element.text), element.text, element.line)


def changefreq(element: Element | None, gathered: Gathered) -> str | None:
    """The frequency that an element tells, if it does."""
    if element is None:
        return None
    return gathered.sensible("changefreq", change_frequency(element.text), element.text, element.line)


def _priority(element: Element | None, gathered: Gathered) -> float | None:
    if element is None:
        return None
    return gathered.sensible("priority", share(element.text), element.text, element.line)


def _read_link(link: Element, relations: frozenset[str], gathered: Gathered) -> None:
    if link.attributes.get("rel") not in relations or "href" not in link.attributes:
        return
    url = gathered.address(link.attributes["href"].strip(), link.line)
    if url is None:
        return
    if relations is _UPWARDS:
        gathered.sitemap(url)
    else:
        gathered.page(url)
