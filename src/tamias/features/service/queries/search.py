"""Search for resources by words: of their titles, addresses, hosts and columns."""

from typing import Any

import msgspec

from tamias.archive.moments import of_row
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.queries.usage import unlisted

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
    """The words of a search, and the resources found."""

    words: str
    hits: list[Hit]
    more: bool
    """Whether there are more than these."""


def find(db: ServiceSession, words: str, most: int = MOST_FOUND, *, owner: bool) -> Search:
    """Resources that have all the words, or words that begin so; what is unlisted only for the owner."""
    parts = find_words(db, words)
    terms = {"every": query(parts, " & "), "any": query(parts, " | ")}
    hits = _listed(db, terms, most + 1, owner=owner) if parts else []
    return Search(words=words, hits=hits[:most], more=len(hits) > most)


def _listed(db: ServiceSession, terms: dict[str, str], wanted: int, *, owner: bool) -> list[Hit]:
    """The first hits that may be listed; where some may not, more are looked at."""
    looked = wanted
    while True:
        found = db.rows("search", {**terms, "most": MOST_SORTED, "limit": looked})
        hidden = frozenset() if owner else unlisted(db, (row[0] for row in found))
        hits = [hit(row) for row in found if row[0] not in hidden]
        if len(hits) >= wanted or len(found) < looked or looked >= MOST_SORTED:
            return hits[:wanted]
        looked = MOST_SORTED


def find_words(db: ServiceSession, text: str) -> list[str]:
    """Return the words that a search for a text looks for."""
    words: list[str] = db.rows("words", {"text": text})[0][0]
    return words


def query(words: list[str], sign: str) -> str:
    r"""Words as PostgreSQL's tsquery, each for all that begins with it.

    >>> query(["air", "o'brien\\"], " & ")
    "'air':* & 'o''brien\\\\':*"
    """
    return sign.join("'{}':*".format(word.replace("\\", "\\\\").replace("'", "''")) for word in words)


def hit(row: tuple[Any, ...]) -> Hit:
    """A row of a statement that gives resources, with or without columns."""
    return of_row(Hit, row)
