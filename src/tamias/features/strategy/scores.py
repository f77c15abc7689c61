"""Scores of a strategy: a batch in one call, as a role that can only read, within a time limit.

Each call has a connection of its own, and what it does there is rolled back.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import psycopg
from psycopg import errors as pg

from tamias.database.columns import Texts
from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.features.strategy.time_limit import TimeLimitExceeded, time_limit

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
