"""What scores cost: 1,000 new URLs, each with one link to it, scored by a strategy in one call."""

import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from benchmarks.strategy.web import KINDS
from tamias.crawl.strategy.scoring import Asked, Broken, Seen, ask
from tamias.crawl.strategy.versions import apply
from tamias.database.connect import Database, Session
from tamias.model.errors import TamiasError

BATCH = 1000
ROUNDS = 20
SECONDS = 30.0


class Cost(msgspec.Struct, frozen=True):
    """The median of some calls."""

    strategy: str
    milliseconds: float


def measure_cost(examples: Path, kinds: Sequence[str] = KINDS) -> list[Cost]:
    """Of each example, on an empty database."""
    with (
        tempfile.TemporaryDirectory(prefix="tamias-strategy-", ignore_cleanup_errors=True) as work,
        closing(Database(Path(work))) as database,
        closing(database.session()) as session,
    ):
        return [Cost(kind, _median(session, examples / f"{kind}.sql")) for kind in kinds]


def _median(session: Session, file: Path) -> float:
    number, _ = apply(session, 1, file.name, file.read_text(encoding="utf-8"), [], SECONDS)
    pages = batch()
    return statistics.median(_timed(session, number, pages) for _ in range(ROUNDS))


def _timed(session: Session, number: int, pages: Sequence[Asked]) -> float:
    begun = time.perf_counter()
    said = ask(session, number, pages, SECONDS)
    if isinstance(said, Broken):
        raise TamiasError(f"strategy {number}: {said.what}")
    return (time.perf_counter() - begun) * 1000


def batch() -> list[Asked]:
    """URLs as a crawl finds them, with the words of one paragraph around each link."""
    words = [
        "Measured in every catchment:",
        "river levels",
        "with rainfall since 1950.",
        "read more",
        "une page",
    ]
    return [
        Asked(
            url=f"http://host{turn % 97}.example.org/section/{turn % 7}/page-{turn}.html",
            host=f"host{turn % 97}.example.org",
            depth=1 + turn % 5,
            crawl=1,
            links=[
                Seen(
                    anchor=words[turn % 5],
                    context_left=words[(turn + 1) % 5],
                    context_right=words[(turn + 2) % 5],
                    language="en",
                    from_url="http://example.org/",
                    from_score=0.5,
                    from_quads=turn % 3,
                )
            ],
        )
        for turn in range(BATCH)
    ]
