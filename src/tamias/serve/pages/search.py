"""Search for resources whose title, address or host has all the words."""

import msgspec
from starlette.requests import Request

from tamias.archive.figures import basic_figures
from tamias.serve.asked import parameter
from tamias.serve.desks import Desk
from tamias.serve.pages.page import Page
from tamias.serve.problems import Problem
from tamias.serve.service import Service

MOST_FOUND = 50
MOST_SEARCHED = 500_000
"""Resources that one search looks at."""
MOST_WORDS = 8
LONGEST_SEARCH = 200


class Hit(msgspec.Struct, frozen=True):
    """A resource that was found."""

    id: str
    url: str
    host: str
    title: str | None
    state: str
    media_type: str | None
    versions: int


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """What was looked for and found."""

    words: str
    hits: list[Hit]
    more: bool
    """Whether there are more than these."""
    whole: bool
    """Whether all resources were looked at."""


async def search(request: Request, service: Service) -> Search:
    """What the parameter `q` finds; nothing without it."""
    words = (parameter(request, "q") or "").strip()
    if len(words) > LONGEST_SEARCH:
        raise Problem(400, f"'q' may have {LONGEST_SEARCH} characters at most")
    if len(words.split()) > MOST_WORDS:
        raise Problem(400, f"'q' may have {MOST_WORDS} words at most")
    if not words:
        return Search(words="", hits=[], more=False, whole=True)
    return await service.desks.ask(lambda desk: _found(desk, words))


def patterns(words: str) -> list[str]:
    """The words as patterns of SQL's LIKE, in which they stand for themselves.

    >>> patterns("Air 100%")
    ['%air%', '%100\\\\%%']
    """
    return [f"%{_literal(word)}%" for word in words.lower().split()]


def _literal(word: str) -> str:
    return word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _found(desk: Desk, words: str) -> Search:
    asked = {"pattern": patterns(words), "most": MOST_SEARCHED, "limit": MOST_FOUND + 1}
    hits = [Hit(*row) for row in desk.rows("search", asked)]
    whole = basic_figures(desk.session).datasets <= MOST_SEARCHED
    return Search(words=words, hits=hits[:MOST_FOUND], more=len(hits) > MOST_FOUND, whole=whole)


PAGE = Page(path="/search", template="search.html", view=search, data="/search.json")
