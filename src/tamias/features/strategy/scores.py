"""Scores that strategies give: asked for within a time limit, and scaled to the frontier's range."""

import math
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import psycopg
from psycopg import errors as pg

from tamias.database.columns import Texts
from tamias.database.connect import Cursor, Session
from tamias.database.nodes import leave
from tamias.database.sql import statements
from tamias.model.item import CLASSES, priority_class

GRACE_SECONDS = 1.0
"""The time that statement_timeout has first: it keeps the connection."""


class TimeLimitExceeded(Exception):
    """The connection was left."""

    def __init__(self, *, goes_on: bool) -> None:
        super().__init__()
        self.goes_on = goes_on
        """Whether the server could not end what runs there."""


@contextmanager
def time_limit(session: Session, cursor: Cursor, seconds: float) -> Iterator[None]:
    """Leave the cursor's connection and raise `TimeLimitExceeded` if the block takes longer."""
    done = threading.Event()
    # Not what the connection says of itself: a pooler makes that up.
    row = cursor.execute("SELECT pg_catalog.pg_backend_pid()").fetchone()
    pid = row[0] if row else 0
    exceeded: list[TimeLimitExceeded] = []

    def watch() -> None:
        if not done.wait(seconds + GRACE_SECONDS):
            exceeded.append(TimeLimitExceeded(goes_on=not session.end_backend(pid)))
            leave(cursor.connection)

    watcher = threading.Thread(target=watch, name="strategy time limit", daemon=True)
    watcher.start()
    try:
        yield
    except psycopg.Error:
        done.set()
        watcher.join()
        if not exceeded:
            raise
    finally:
        done.set()
        watcher.join()
    if exceeded:
        raise exceeded[0]


SQL = statements("tamias.features.strategy", "strategy.sql")
HIGHEST = 2.0**60
"""The highest score that is told apart from higher ones."""


class SeenLink(msgspec.Struct):
    """A link to a page: the fields of the SQL type `seen_link`, without the URL it leads to."""

    anchor: str | None = None
    context_left: str | None = None
    context_right: str | None = None
    count: int = 1
    language: str | None = None
    from_url: str = ""
    from_score: float | None = None
    from_quads: int | None = None


class UrlToScore(msgspec.Struct, frozen=True):
    """A URL to score: the fields of the SQL type `known_url`, and the links to it by their page."""

    url: str
    host: str
    depth: int
    crawl: int
    tags: tuple[str, ...] = ()
    links: dict[str, SeenLink] = msgspec.field(default_factory=dict)


class Scores(msgspec.Struct, frozen=True):
    """The scores that a strategy gives a URL."""

    url_score: float | None
    link_score: float | None
    score: float | None
    """At least 0, on the scale of the strategy; None means the default score."""


class StrategyFailure(msgspec.Struct, frozen=True):
    """The reason why a strategy gave no scores, and whether it only took too long."""

    what: str
    slow: bool = False


def schema(number: int) -> str:
    """Return the name of the schema that a version's functions are in."""
    return f"strategy_{number}"


def ask(
    session: Session, number: int, pages: Sequence[UrlToScore], seconds: float
) -> list[Scores] | StrategyFailure:
    """Return the scores of pages by a version; the session is as before."""
    apart = session.apart()

    def work(cursor: Cursor) -> list[Scores] | StrategyFailure:
        try:
            with cursor.connection.transaction(force_rollback=True), time_limit(session, cursor, seconds):
                return read_scores(cursor, number, pages, seconds)
        except psycopg.Error as error:
            if cursor.connection.closed:
                raise
            return StrategyFailure(describe_error(error, seconds), isinstance(error, pg.QueryCanceled))
        finally:
            if not cursor.connection.closed:
                cursor.execute(SQL["unlock"].text)

    try:
        return apart.transact(work)
    except TimeLimitExceeded as error:
        apart.close()
        # What goes on takes a processor: it is not tried once more.
        return StrategyFailure(timeout_message(seconds, goes_on=error.goes_on), slow=not error.goes_on)


def read_scores(cursor: Cursor, number: int, pages: Sequence[UrlToScore], seconds: float) -> list[Scores]:
    """Call a version as the role of strategies; the settings for it end with the transaction around it."""
    cursor.execute(SQL["read_only"].text)
    cursor.execute(SQL["limit_time"].text, {"milliseconds": str(int(seconds * 1000))})
    cursor.execute(SQL["take_role"].text)
    text = SQL["scores"].text.replace(b":schema", schema(number).encode())
    rows = cursor.execute(text, _columns(pages)).fetchall()
    return [
        Scores(by_url, by_link, None if score is None else min(HIGHEST, max(0.0, score)))
        for _, by_url, by_link, score in rows
    ]


def describe_error(error: psycopg.Error, seconds: float) -> str:
    """Return what went wrong, for the author of the strategy."""
    if isinstance(error, pg.QueryCanceled):
        return timeout_message(seconds)
    if isinstance(error, pg.LockNotAvailable):
        return "another one is being tried, or has not ended in the server; try again later"
    where = (error.diag.context or "").splitlines()
    inside = next((line for line in where if "tamias_" not in line), "")
    what = error.diag.message_primary or str(error)
    return f"{what} ({inside})" if inside else what


def timeout_message(seconds: float, *, goes_on: bool = False) -> str:
    """Return the sentence about a strategy that took too long."""
    then = ", and the server cannot end it before it is done" if goes_on else ""
    return f"it did not end within {seconds:g} s (setting strategy.seconds){then}"


def link_columns(links: Sequence[SeenLink]) -> dict[str, Any]:
    """Return the parameters of a statement that takes an array for each field of links."""
    texts = ("anchor", "context_left", "context_right", "language", "from_url")
    numbers = ("count", "from_score", "from_quads")
    columns: dict[str, Any] = {name: Texts(getattr(link, name) for link in links) for name in texts}
    return columns | {name: [getattr(link, name) for link in links] for name in numbers}


def _columns(pages: Sequence[UrlToScore]) -> dict[str, Any]:
    links = [(place, link) for place, page in enumerate(pages, 1) for link in page.links.values()]
    return link_columns([link for _, link in links]) | {
        "url": Texts(page.url for page in pages),
        "host": Texts(page.host for page in pages),
        "depth": [page.depth for page in pages],
        "crawl": [page.crawl for page in pages],
        "tags": Texts("\t".join(page.tags) if page.tags else None for page in pages),
        "place": [place for place, _ in links],
    }


CLUSTER = 0.9
"""The share of scores in one class from which on a strategy hardly tells hosts apart."""
FEWEST = 10
"""The fewest scores from which this can be said."""


def scale_for(scores: Iterable[float | None]) -> float:
    """Return the smallest scale with room for scores.

    >>> scale_for([0.5, None]), scale_for([6.0, 5.0, 3.0]), scale_for([8.0])
    (1.0, 8.0, 8.0)
    """
    highest = max((score for score in scores if score is not None), default=0.0)
    return 1.0 if highest <= 1.0 else 2.0 ** math.ceil(math.log2(highest))


def scale_of(cursor: Cursor, number: int) -> float:
    """Return the scale of a strategy."""
    row = cursor.execute(SQL["scale_of"].text, {"number": number}).fetchone()
    return 1.0 if row is None else float(row[0])


def widen(cursor: Cursor, number: int, scale: float) -> bool:
    """Widen the scale if needed, mark known URLs for rescoring, and return whether this was done."""
    if scale <= scale_of(cursor, number):
        return False
    row = cursor.execute(SQL["widen"].text, {"number": number, "scale": scale}).fetchone()
    if row is not None:
        cursor.execute(SQL["start_rescoring"].text, {"crawl": row[0]})
    return True


def scale_scores(said: Sequence[Scores], scale: float) -> list[Scores]:
    """Return the scores divided by the scale, so that they are between 0 and 1."""
    if scale == 1.0:
        return list(said)
    return [
        each if each.score is None else msgspec.structs.replace(each, score=each.score / scale)
        for each in said
    ]


def cluster(scores: Sequence[float | None]) -> str | None:
    """Return a note about scores that hardly differ, if they do not."""
    known = [score for score in scores if score is not None]
    if len(known) < FEWEST:
        return None
    scale = scale_for(known)
    classes = Counter(priority_class(score / scale) for score in known)
    ((fullest, count),) = classes.most_common(1)
    if count < CLUSTER * len(known):
        return None
    low, high = fullest * scale / CLASSES, (fullest + 1) * scale / CLASSES
    return (
        f"{count:,} of {len(known):,} scores lie between {low:g} and {high:g}, one class of {CLASSES}: "
        f"hosts are hardly distinguished; spread the scores over 0 to {scale:g}"
    )
