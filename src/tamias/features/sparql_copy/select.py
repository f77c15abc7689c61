"""A user's SELECT as a source of addresses: asked page by page, however few rows the server gives at once."""

import re
from collections.abc import AsyncIterator, Iterator

import msgspec

from tamias.features.sparql_copy.answers import Row, SparqlAnswer
from tamias.features.sparql_copy.client import RESULT_FORMATS, EndpointClient, EndpointDialect, QueryFailed
from tamias.model.errors import UsageError

_TOKEN = re.compile(
    r"""
    (?P<skip> \#[^\n]* | <[^\s<>"{}|^`\\]*>
        | \"{3}(?:[^"\\]|\\.|\"{1,2}(?!\"))*\"{3} | '{3}(?:[^'\\]|\\.|'{1,2}(?!'))*'{3}
        | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' | [?$@]\w+ | [\w.\-]*:[\w.\-%:]* )
    | (?P<open> [{(] ) | (?P<close> [})] ) | (?P<word> [A-Za-z]\w* ) | (?P<number> \d+ )
    """,
    re.VERBOSE | re.DOTALL,
)
_ADDRESS_NAMES = ("url", "uri")
_FORMS = ("SELECT", "CONSTRUCT", "ASK", "DESCRIBE")
_TRIES = 3


class Question(msgspec.Struct, frozen=True):
    """A query without its window, cut where a window goes."""

    head: str
    tail: str
    """A VALUES clause at the end comes after the window."""
    limit: int | None
    offset: int
    ordered: bool
    constructs: bool = False

    def window(self, limit: int, offset: int, order: str = "") -> str:
        """The query for some of its rows."""
        return f"{self.head}{order}\nLIMIT {limit} OFFSET {offset}\n{self.tail}"


def question(query: str) -> Question:
    """Takes a user's query apart. Raises `UsageError` when it is neither SELECT nor CONSTRUCT.

    >>> question("SELECT ?s { ?s a <urn:c> } LIMIT 5 # all").limit
    5
    """
    words = list(_outer_words(query))
    names = [word.upper() for word, _ in words]
    form = next((name for name in names if name in _FORMS), None)
    if form is None or form not in ("SELECT", "CONSTRUCT"):
        raise UsageError("The query is neither a SELECT nor a CONSTRUCT.")
    end = next((at for (_, at), name in zip(words, names, strict=True) if name == "VALUES"), len(query))
    cuts = []
    found = {"LIMIT": 0, "OFFSET": 0}
    for (_, at), name, (number, number_at) in zip(words, names, [*words[1:], ("", 0)], strict=True):
        if name in found and number.isdigit():
            found[name] = int(number)
            cuts.append((at, number_at + len(number)))
    head = query[:end]
    for start, stop in reversed(cuts):
        head = head[:start] + head[stop:]
    limit = found["LIMIT"] if "LIMIT" in names else None
    return Question(
        head.rstrip() + "\n", query[end:], limit, found["OFFSET"], "ORDER" in names, form == "CONSTRUCT"
    )


def _outer_words(query: str) -> Iterator[tuple[str, int]]:
    """The words and numbers outside of all brackets, strings, names and comments, with their places."""
    depth = 0
    for token in _TOKEN.finditer(query):
        depth += (token["open"] is not None) - (token["close"] is not None)
        if depth == 0 and (token["word"] or token["number"]):
            yield token[0], token.start()


class SelectState(msgspec.Struct, kw_only=True):
    """The state of a query: it goes on after the last page that was stored."""

    dialect: EndpointDialect = msgspec.field(default_factory=EndpointDialect)
    rows: int = 0
    """Read so far."""
    order: str | None = None
    """What pages are sorted by; None before the first page."""
    ended: bool = False


async def select_pages(
    client: EndpointClient, query: Question, state: SelectState, *, page: int = 10_000, most: int = 1_000_000
) -> AsyncIterator[list[dict[str, str]]]:
    """The rows of a SELECT that have an address, page by page; the state is that after the page.

    The address is the variable called `url` or `uri`, else the first that is an IRI, and comes first. There
    are no more rows than the query's own LIMIT, or `most`. Raises `QueryFailed`.
    """
    wanted = most if query.limit is None else min(query.limit, most)
    if state.order is None and wanted > 0:
        first = await _first(client, query.window(min(page, wanted), query.offset))
        state.order = await _order(client, query, first, wanted)
        if not state.order:
            yield _taken(first, state, wanted)
    while not state.ended and state.rows < wanted:
        window = query.window(min(page, wanted - state.rows), query.offset + state.rows, state.order or "")
        yield _taken(await client.answer(window, _TRIES), state, wanted)


def _taken(answer: SparqlAnswer, state: SelectState, wanted: int) -> list[dict[str, str]]:
    rows = answer.rows[: wanted - state.rows]
    state.rows += len(rows)
    state.ended = not rows or state.rows >= wanted
    return [found for row in rows if (found := _addressed(row, answer.variables))]


async def _order(client: EndpointClient, query: Question, first: SparqlAnswer, wanted: int) -> str:
    """The order to page in, where there is more than one page and the user gave none."""
    rows = len(first.rows)
    if query.ordered or rows >= wanted or not first.variables:
        return ""
    more = await client.answer(query.window(1, query.offset + rows), _TRIES)
    return f"ORDER BY {' '.join(f'?{name}' for name in first.variables)}" if more.rows else ""


async def _first(client: EndpointClient, query: str) -> SparqlAnswer:
    """The first answer, in the form of results that the server gives."""
    for results in RESULT_FORMATS[:-1]:
        client.dialect.results = results
        try:
            return await client.answer(query, _TRIES)
        except QueryFailed as failure:
            if failure.final or failure.lasting or failure.capture is None or failure.capture.body is None:
                raise
    client.dialect.results = RESULT_FORMATS[-1]
    return await client.answer(query, _TRIES)


def _addressed(row: Row, variables: list[str]) -> dict[str, str] | None:
    """The row with its address first; None when it has none."""
    names = [name for name in variables or row if name in row]
    named = [name for name in names if name.lower() in _ADDRESS_NAMES]
    first = next(iter(named or (name for name in names if row[name].type == "uri")), None)
    if first is None:
        return None
    return {name: row[name].text for name in sorted(names, key=lambda name: name != first)}
