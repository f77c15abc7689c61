"""A seed: an address to start from. An item: a URL on its way into the frontier, and the answer to a put."""

import msgspec

NEVER = 2**63 - 1
"""The due time, in milliseconds, of a URL that is not to be visited again."""
TAGS = "tags"
"""The name of tags among the metadata that clients of a frontier give and get."""

MOST_DEPTH = 2**15 - 1
"""What the frontier can hold; whoever leads a crawl that deep leads it nowhere."""

WATCH = 2
"""The number of the archive's own crawl, of what is watched."""

CLASSES = 8
"""Priority classes between hosts: class 7 is served before class 0."""


class Item(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A URL to be known by the frontier. `host` is the key of its queue. A known one is left as it is."""

    url: str
    key: str
    host: str
    crawl: int = 1
    depth: int = 0
    score: float = 0.5
    due: int | None = None
    """Milliseconds UTC; None means now."""
    tags: tuple[str, ...] = ()
    cut: int = 0
    """Bits of `tamias.model.cut`, for one that is put as visited."""
    spelling: str | None = None
    """As a client of the frontier writes it, where that is not the form to fetch."""
    metadata: str | None = None
    """What a client notes of it, in JSON."""
    overwrites: bool = False
    """Whether a client speaks of a known URL: its due time, metadata and tags are written in any case."""
    keeps_tags: bool = False
    """Whether it says nothing of tags then, so that a known URL keeps those it has."""


def priority_class(score: float) -> int:
    """The class of a score between 0 and 1.

    >>> priority_class(0.0), priority_class(0.5), priority_class(1.0)
    (0, 4, 7)
    """
    return max(0, min(CLASSES - 1, int(CLASSES * score)))


DESCRIBED = "described"
"""The tag of what is requested because the copy of an endpoint describes it."""
TRUSTED = "trusted"
"""The tag of what the user named as a source: it may speak for any graph but our own."""


class Seed(msgspec.Struct, frozen=True, kw_only=True):
    """An address as the user wrote it."""

    address: str
    kind: str | None = None
    """What stands there, by the user's word: `sparql`, `ckan`, ..."""
    tags: tuple[str, ...] = ()
    queue: str | None = None
    """The key of its queue, where another frontier has given it one."""
    crawl: str | None = None
    """The name of its crawl there."""
    due: int | None = None
    """Milliseconds UTC; set where it is known there, and then what is known here is overwritten."""
    metadata: dict[str, list[str]] | None = None
    """What is noted there; set for all that comes from another frontier."""
    line: str | None = None
    """The file and the line that it is from."""
    problem: str | None = None
    """Why it cannot be crawled: the line does not name a URL."""
