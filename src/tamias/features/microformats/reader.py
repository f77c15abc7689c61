"""Reads the microformats of a page into quads, within limits."""

from collections.abc import Iterator
from itertools import islice

from tamias.analyse.markup.page import MarkupPage
from tamias.features.microformats.items import microformats
from tamias.features.microformats.quads import quads
from tamias.model.finding import Finding, Problem, Quads

BATCH = 1000
MAX_QUADS = 100_000
ROOM_PER_BYTE = 8
LEAST_ROOM = 1_000_000
MOST_ROOM = 20_000_000


def extract(page: MarkupPage) -> Iterator[Finding]:
    """The microformats of the page, unless they repeat its text beyond eight times its size."""
    room = min(MOST_ROOM, max(LEAST_ROOM, ROOM_PER_BYTE * len(page.data)))
    found, complete = microformats(page.tree, base=page.base, room=room)
    if not complete:
        yield Problem(f"microformats that repeat the page's text beyond {room} characters were not read")
    statements = quads(found, page.url)
    written = 0
    while batch := list(islice(statements, min(BATCH, MAX_QUADS - written))):
        yield Quads(batch)
        written += len(batch)
    if next(statements, None) is not None:
        yield Problem(f"only the first {MAX_QUADS} statements of the microformats were taken")
