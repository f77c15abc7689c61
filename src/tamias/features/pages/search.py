"""The page of a search for resources."""

from starlette.requests import Request

from tamias.features.pages.html.page import CsvTable, HtmlPage, table_of
from tamias.features.service.http.params import parameter
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.http.secret import may_read_all
from tamias.features.service.queries.search import COLUMNS, LONGEST_SEARCH, MOST_WORDS, Search, find
from tamias.features.service.service import Service


async def search(request: Request, service: Service) -> Search:
    """Search for the words of the parameter `q`."""
    words = (parameter(request, "q") or "").strip()
    if len(words) > LONGEST_SEARCH:
        raise HttpProblem(400, f"'q' may have {LONGEST_SEARCH} characters at most")
    if len(words.split()) > MOST_WORDS:
        raise HttpProblem(400, f"'q' may have {MOST_WORDS} words at most")
    if not words:
        return Search(words="", hits=[], more=False)
    owner = may_read_all(request)
    return await service.pool.run(lambda db: find(db, words, owner=owner))


def _table(view: Search) -> CsvTable:
    return table_of(view.hits, *COLUMNS, "columns")


PAGE = HtmlPage(path="/search", template="search.html", view=search, data="/search.json", table=_table)
