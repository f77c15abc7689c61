"""Search for resources by words: of their titles, addresses, hosts and columns."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from starlette.requests import Request

from tamias.archive.moments import of_row
from tamias.features.service.http.exchange import media_type, parameter
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.queries.usage import unlisted

MOST_FOUND = 50
MOST_COUNTED = 2_000
"""Resources found that facets count, and that a search knows the order of."""
MOST_RANKED = 20_000
"""Of more that have the words, only so many are ranked."""
MOST_VALUES = 10
"""Values of a facet that are listed."""
MOST_WORDS = 8
LONGEST_SEARCH = 200
COLUMNS = ("id", "url", "host", "title", "state", "media_type", "versions", "captured_at")
FACETS: Final = ("portal", "publisher", "type", "licence", "state", "size", "changed")


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
    """The words and filters of a search, and the resources found, the best first."""

    words: str
    hits: Sequence[Hit]
    more: bool
    """Whether there are more than these."""
    found: int = 0
    """How many there are; 2,000 where there may be more."""
    filters: Mapping[str, str] = {}
    facets: Mapping[str, Mapping[str, int]] = {}
    """How many of those found have each of the most frequent values of a facet."""


def read_search(request: Request) -> tuple[str, dict[str, str]]:
    """Return the words and filters that a request asks for. Raises `HttpProblem`."""
    words = (parameter(request, "q") or "").strip()
    if len(words) > LONGEST_SEARCH:
        raise HttpProblem(400, f"'q' may have {LONGEST_SEARCH} characters at most")
    if len(words.split()) > MOST_WORDS:
        raise HttpProblem(400, f"'q' may have {MOST_WORDS} words at most")
    filters = {name: value for name in FACETS if (value := parameter(request, name))}
    if "type" in filters:
        filters["type"] = media_type(filters["type"])
    return words, filters


def find(
    db: ServiceSession,
    words: str,
    most: int = MOST_FOUND,
    filters: Mapping[str, str] | None = None,
    *,
    owner: bool,
) -> Search:
    """Resources that have all the words, or words that begin so; what is unlisted only for the owner.

    With `filters`, also an empty one, facets are counted.
    """
    parts, title = db.rows("words", {"text": words})[0]
    if not parts and (words or not filters):
        return Search(words=words, hits=[], more=False)
    every, now = query(parts, " & "), db.session.now()
    terms = {"title": f"'{title}'", "exact": every.replace(":*", ""), "every": every}
    limits = {"most": MOST_RANKED, "limit": MOST_COUNTED, "now": now}
    found = db.rows("search", {**dict.fromkeys(FACETS), **(filters or {}), **terms, **limits})
    names = [name for (name,) in found]
    hidden = frozenset() if owner else unlisted(db, names)
    listed = [name for name in names if name not in hidden]
    rows = db.rows("hits", {"resource": listed[:most], "any": query(parts, " | ")})
    facets = defaultdict[str, dict[str, int]](dict)
    if filters is not None:
        for facet, value, n in db.rows("facets", {"resource": listed, "now": now, "values": MOST_VALUES}):
            facets[facet][value] = n
    return Search(
        words=words,
        hits=[hit(row) for row in rows],
        more=len(listed) > most,
        found=len(listed),
        filters=filters or {},
        facets=facets,
    )


def find_words(db: ServiceSession, text: str) -> list[str]:
    """Return the words that a search for a text looks for."""
    found: list[str] = db.rows("words", {"text": text})[0][0]
    return found


def query(words: list[str], sign: str) -> str:
    r"""Words as PostgreSQL's tsquery, each for all that begins with it.

    >>> query(["air", "o'brien\\"], " & ")
    "'air':* & 'o''brien\\\\':*"
    """
    return sign.join("'{}':*".format(word.replace("\\", "\\\\").replace("'", "''")) for word in words)


def hit(row: tuple[Any, ...]) -> Hit:
    """A row of a statement that gives resources, with or without columns."""
    return of_row(Hit, row)
