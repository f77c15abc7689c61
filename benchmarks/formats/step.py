"""The analyse-and-store step as a worker does it: a body in, quads in a segment and links out."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from hashlib import file_digest
from pathlib import Path
from tempfile import TemporaryDirectory

from pyoxigraph import RdfFormat, parse

from benchmarks.formats.corpus import SITE
from tamias.crawl.analysing.extractor import Extraction, Extractor, TakeLinks
from tamias.model.capture import Body, Capture, Hop, Outcome
from tamias.sinks.segments.segment_files import SegmentWriter

TIMES = 3


def fetched(path: Path, media_type: str) -> tuple[Capture, Body]:
    """A file as if it had been fetched into the spool."""
    with path.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
    body = Body(size=path.stat().st_size, sha256=digest, path=str(path))
    url = f"{SITE}{path.name}"
    answer = Hop(url=url, status=200, headers=(("content-type", media_type),), address="192.0.2.1")
    capture = Capture(
        url=url, started_at=0, ended_at=0, outcome=Outcome.OK, reason="", hops=(answer,), body=body
    )
    return capture, body


def stored(
    extractor: Extractor, captures: Sequence[tuple[Capture, Body]], take_links: TakeLinks
) -> list[Extraction]:
    """Analyses bodies one after the other into one segment, which is durable in the end."""
    with (
        TemporaryDirectory(prefix="tamias-bench-") as folder,
        SegmentWriter(Path(folder, "1.nq.zst"), 1) as writer,
    ):
        found = [extractor.extract(capture, body, writer.document, take_links) for capture, body in captures]
        writer.sync()
        return found


def collected(extractor: Extractor, captures: Sequence[tuple[Capture, Body]]) -> list[Extraction]:
    """The same, with the links gathered as for small documents."""
    links: list[tuple[Sequence[str], str]] = []
    return stored(extractor, captures, lambda found, base, _kind: links.append((found, base)))


def parsed_alone(path: Path, form: RdfFormat) -> None:
    """What `pyoxigraph.parse` does with a file, and nothing beside it."""
    deque(parse(path=str(path), format=form, base_iri=f"{SITE}{path.name}"), maxlen=0)


def cpu_seconds(work: Callable[[], object], times: int = TIMES) -> float:
    """Processor time of this process, the best of some runs."""
    return min(_once(work) for _ in range(times))


def _once(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
