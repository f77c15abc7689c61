"""States of crawled documents: what is compared, and what a history is made of."""

import re
from bisect import bisect_right
from collections.abc import Iterator

from tamias.archive.captures import document_states
from tamias.archive.file_store import segments_of
from tamias.archive.moments import Moment, milliseconds, rfc3339
from tamias.archive.reader.content import GraphContent
from tamias.archive.reader.graph_history import GraphHistory
from tamias.archive.reader.library import ArchiveReader, NotArchived
from tamias.model.capture import Extent
from tamias.model.url import fetch_url
from tamias.sinks.segments.segment_files import SegmentReader

_NUMBER = re.compile(r"[0-9]{1,9}")


def graph_history(archive: ArchiveReader, url: str) -> GraphHistory:
    """Return the history of a crawled document. Raises `NotArchived`."""
    states = document_states(archive.session, fetch_url(url))
    if not states:
        raise NotArchived(f"no statements of {url} were crawled")
    with SegmentReader(segments_of(archive.session, archive.data)) as reader:
        return GraphHistory(states, reader.read)


def graph_pair(
    archive: ArchiveReader, url: str, a: int | Moment | None, b: int | Moment | None
) -> tuple[GraphContent, GraphContent] | None:
    """Return two states of a crawled document, by numbers or moments, else the last two.

    None where it was never crawled. Raises `NotArchived` where it has no such states.
    """
    states = document_states(archive.session, fetch_url(url))

    def number(which: int | Moment | None, default: int) -> int:
        if isinstance(which, int) or (isinstance(which, str) and _NUMBER.fullmatch(which)):
            chosen = int(which)
        else:
            read_at = [each.read_at for each in states]
            chosen = default if which is None else bisect_right(read_at, milliseconds(which))
        if not 0 < chosen <= len(states):
            first = f"{len(states)} states, the first of {rfc3339(states[0].read_at)}"
            raise NotArchived(f"{url} has no such state to compare; it has {first}")
        return chosen

    def content(chosen: int) -> GraphContent:
        return GraphContent(url, chosen, lambda: _statements(archive, states[chosen - 1].extent))

    if not states:
        return None
    newest = number(b, len(states))
    return content(number(a, newest - 1)), content(newest)


def _statements(archive: ArchiveReader, extent: Extent | None) -> Iterator[bytes]:
    with SegmentReader(segments_of(archive.session, archive.data)) as reader:
        yield from reader.read(extent) if extent else ()
