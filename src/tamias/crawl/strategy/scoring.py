"""Asks a strategy for scores: a whole batch in one call, as a role that can only read, within a time limit.

What the call does is rolled back, and it has a connection of its own.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import psycopg
from psycopg import errors as pg

from tamias.crawl.strategy.time_limit import TookTooLong, time_limit
from tamias.database.columns import Texts
from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements

SQL = statements("tamias.crawl.strategy", "strategy.sql")
HIGHEST = 2.0**60
"""Scores above it are all the same."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A link to a page: what a strategy is told of it. The fields of `seen_link`."""

    anchor: str | None = None
    context_left: str | None = None
    context_right: str | None = None
    count: int = 1
    language: str | None = None
    from_url: str = ""
    from_score: float | None = None
    from_quads: int | None = None


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A page whose score is wanted: the fields of `known_url`, and the links to it."""

    url: str
    host: str
    depth: int
    crawl: int
    tags: tuple[str, ...] = ()
    links: Sequence[Seen] = ()


class Scores(msgspec.Struct, frozen=True):
    """What a strategy says of a page."""

    url_score: float | None
    link_score: float | None
    score: float | None
    """At least 0, as the strategy gives it; None leaves the usual one."""


class Broken(msgspec.Struct, frozen=True):
    """A strategy could not say anything: why, and whether it only took too long."""

    what: str
    slow: bool = False


def schema(number: int) -> str:
    """The room of one version's functions."""
    return f"strategy_{number}"


def ask(session: Session, number: int, pages: Sequence[Asked], seconds: float) -> list[Scores] | Broken:
    """The scores of the pages by a version. Leaves the session as it was."""
    apart = session.apart()

    def work(cursor: Cursor) -> list[Scores] | Broken:
        try:
            with cursor.connection.transaction(force_rollback=True), time_limit(session, cursor, seconds):
                rows = asked_as_role(cursor, number, pages, seconds)
        except psycopg.Error as error:
            if cursor.connection.closed:
                raise
            return Broken(told(error, seconds), isinstance(error, pg.QueryCanceled))
        finally:
            if not cursor.connection.closed:
                cursor.execute(SQL["unlock"].text)
        return scores_in(rows)

    try:
        return apart.transact(work)
    except TookTooLong:
        apart.close()
        return Broken(too_long(seconds), slow=True)


def asked_as_role(
    cursor: Cursor, number: int, pages: Sequence[Asked], seconds: float
) -> list[tuple[Any, ...]]:
    """The rows of `scores`. What was set for it ends with the transaction around it."""
    cursor.execute(SQL["read_only"].text)
    cursor.execute(SQL["limit_time"].text, {"milliseconds": str(int(seconds * 1000))})
    cursor.execute(SQL["take_role"].text)
    text = SQL["scores"].text.replace(b":schema", schema(number).encode())
    return cursor.execute(text, _columns(pages)).fetchall()


def scores_in(rows: Sequence[tuple[Any, ...]]) -> list[Scores]:
    """The rows of `scores` as values."""
    return [Scores(url_score, link_score, _within(score)) for _, url_score, link_score, score in rows]


def told(error: psycopg.Error, seconds: float) -> str:
    """What went wrong, for the author of the strategy."""
    if isinstance(error, pg.QueryCanceled):
        return too_long(seconds)
    where = (error.diag.context or "").splitlines()
    inside = next((line for line in where if "tamias_" not in line), "")
    what = error.diag.message_primary or str(error)
    return f"{what} ({inside})" if inside else what


def too_long(seconds: float) -> str:
    """The same for the time limit."""
    return f"it did not end within {seconds:g} s (setting strategy.seconds)"


def _within(score: float | None) -> float | None:
    return None if score is None else min(HIGHEST, max(0.0, score))


def _columns(pages: Sequence[Asked]) -> dict[str, Any]:
    links = [(place, link) for place, page in enumerate(pages, 1) for link in page.links]
    return {
        "url": Texts(page.url for page in pages),
        "host": Texts(page.host for page in pages),
        "depth": [page.depth for page in pages],
        "crawl": [page.crawl for page in pages],
        "tags": Texts("\t".join(page.tags) if page.tags else None for page in pages),
        "place": [place for place, _ in links],
        "anchor": Texts(link.anchor for _, link in links),
        "context_left": Texts(link.context_left for _, link in links),
        "context_right": Texts(link.context_right for _, link in links),
        "count": [link.count for _, link in links],
        "language": Texts(link.language for _, link in links),
        "from_url": Texts(link.from_url for _, link in links),
        "from_score": [link.from_score for _, link in links],
        "from_quads": [link.from_quads for _, link in links],
    }
