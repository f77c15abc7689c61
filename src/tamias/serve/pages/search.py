"""Search for resources by words: of their titles, addresses, hosts and columns."""

from typing import Any

import msgspec
from starlette.requests import Request

from tamias.archive.moments import rfc3339
from tamias.serve.http.params import parameter
from tamias.serve.http.problems import HttpProblem
from tamias.serve.http.secret import may_read_all
from tamias.serve.pages.html.page import HtmlPage
from tamias.serve.pages.html.tables import CsvTable, table_of
from tamias.serve.pages.queries import rows
from tamias.serve.queries.thread_pool import ServiceSession
from tamias.serve.replay.usage import unlisted
from tamias.serve.service import Service

MOST_FOUND = 50
MOST_SORTED = 2_000
"""Of more that are found, the newest need not be first."""
MOST_WORDS = 8
LONGEST_SEARCH = 200
COLUMNS = ("id", "url", "host", "title", "state", "media_type", "versions", "captured_at")


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """A resource that was found."""

    id: str
    url: str
    host: str
    title: str | None
    state: str
    media_type: str | None
    versions: int
    captured_at: str | None
    """Of its current version."""
    trouble: str | None = None
    """Why the latest visit brought nothing, if so."""
    columns: tuple[str, ...] = ()
    """Those that have one of the words."""

    @property
    def shown_state(self) -> str:
        """A dataset whose visits fail is not just active."""
        return "failing" if self.trouble and self.state == "active" else self.state


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """What was looked for and found."""

    words: str
    hits: list[Hit]
    more: bool
    """Whether there are more than these."""


async def search(request: Request, service: Service) -> Search:
    """What the parameter `q` finds; nothing without it."""
    words = (parameter(request, "q") or "").strip()
    if len(words) > LONGEST_SEARCH:
        raise HttpProblem(400, f"'q' may have {LONGEST_SEARCH} characters at most")
    if len(words.split()) > MOST_WORDS:
        raise HttpProblem(400, f"'q' may have {MOST_WORDS} words at most")
    if not words:
        return Search(words="", hits=[], more=False)
    owner = may_read_all(request)
    return await service.pool.run(lambda db: find(db, words, owner=owner))


def find(db: ServiceSession, words: str, most: int = MOST_FOUND, *, owner: bool) -> Search:
    """Resources that have all the words, or words that begin so; what is unlisted only for the owner."""
    [(parts,)] = rows(db, "words", text=words)
    if not parts:
        return Search(words=words, hits=[], more=False)
    asked = {"every": query(parts, " & "), "any": query(parts, " | ")}
    hits = _listed(db, asked, most + 1, owner=owner)
    return Search(words=words, hits=hits[:most], more=len(hits) > most)


def _listed(db: ServiceSession, asked: dict[str, str], wanted: int, *, owner: bool) -> list[Hit]:
    """The first hits that may be listed; where some may not, more are looked at."""
    looked = wanted
    while True:
        found = rows(db, "search", **asked, most=MOST_SORTED, limit=looked)
        hidden = frozenset() if owner else unlisted(db, (row[0] for row in found))
        hits = [hit(row) for row in found if row[0] not in hidden]
        if len(hits) >= wanted or len(found) < looked or looked >= MOST_SORTED:
            return hits[:wanted]
        looked = MOST_SORTED


def query(words: list[str], sign: str) -> str:
    r"""Words as PostgreSQL's tsquery, each for all that begins with it.

    >>> query(["air", "o'brien\\"], " & ")
    "'air':* & 'o''brien\\\\':*"
    """
    return sign.join("'{}':*".format(word.replace("\\", "\\\\").replace("'", "''")) for word in words)


def hit(row: tuple[Any, ...]) -> Hit:
    """A row of a statement that gives resources, with or without columns."""
    identifier, url, host, title, state, media_type, versions, captured_at, trouble, *columns = row
    return Hit(
        id=identifier,
        url=url,
        host=host,
        title=title,
        state=state,
        media_type=media_type,
        versions=versions,
        captured_at=None if captured_at is None else rfc3339(captured_at),
        trouble=trouble,
        columns=tuple(columns[0]) if columns else (),
    )


def _table(view: Search) -> CsvTable:
    return table_of(view.hits, *COLUMNS, "columns")


PAGE = HtmlPage(path="/search", template="search.html", view=search, data="/search.json", table=_table)
