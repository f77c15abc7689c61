"""Where a portal stands, from any of its addresses: its root, a page of it, or its API."""

import re

from tamias.model.url import authority, fetch_url


def roots(url: str, *inner: str) -> list[str]:
    """The likely roots of the portal that `url` belongs to, likeliest first, each with a slash at the end.

    `inner` are the first segments of paths inside the portal: what stands before them is its root.

    >>> roots("https://example.org/data/dataset/trees?x=1", "api", "dataset")
    ['https://example.org/data/', 'https://example.org/']
    >>> roots("https://example.org/api/3/action/package_search", "api")
    ['https://example.org/']
    """
    url = fetch_url(url)
    top = authority(url) + "/"
    path = url.removeprefix(authority(url)).partition("?")[0]
    segments = [segment for segment in path.split("/") if segment]
    cut = next((place for place, segment in enumerate(segments) if segment in inner), len(segments))
    if cut == len(segments) and segments and re.search(r"\.\w{2,5}$", segments[-1]):
        cut -= 1
    prefix = "/".join(segments[:cut])
    return list(dict.fromkeys([f"{top}{prefix}/" if prefix else top, top]))
