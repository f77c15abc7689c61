"""A user's SELECT as a source of addresses: asked page by page, however few rows the server gives at once."""

import re
from collections.abc import AsyncIterator, Iterator

import msgspec

from tamias.harvesters.sparql.answers import Row, SparqlAnswer
from tamias.harvesters.sparql.client import (
    RESULT_FORMATS,
    EndpointClient,
    EndpointDialect,
    EndpointLimits,
    QueryFailed,
)
from tamias.model.errors import TamiasError, UsageError
from tamias.protocols import PoliteClient

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
_TRIES = 3


class Question(msgspec.Struct, frozen=True):
    """A SELECT without its window, cut where a window goes."""

    head: str
    tail: str
    """A VALUES clause at the end comes after the window."""
    limit: int | None
    offset: int
    ordered: bool

    def window(self, limit: int, offset: int, order: str = "") -> str:
        """The query for some of its rows."""
        return f"{self.head}{order}\nLIMIT {limit} OFFSET {offset}\n{self.tail}"


def question(query: str) -> Question:
    """Takes a user's query apart. Raises `UsageError` when it is not a SELECT.

    >>> question("SELECT ?s { ?s a <urn:c> } LIMIT 5 # all").limit
    5
    """
    words = list(_outer_words(query))
    names = [word.upper() for word, _ in words]
    if "SELECT" not in names:
        raise UsageError("the query for addresses is not a SELECT")
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
    return Question(head.rstrip() + "\n", query[end:], limit, found["OFFSET"], "ORDER" in names)


def _outer_words(query: str) -> Iterator[tuple[str, int]]:
    """The words and numbers outside of all brackets, strings, names and comments, with their places."""
    depth = 0
    for token in _TOKEN.finditer(query):
        depth += (token["open"] is not None) - (token["close"] is not None)
        if depth == 0 and (token["word"] or token["number"]):
            yield token[0], token.start()


async def addresses(
    http: PoliteClient, endpoint: str, query: str, *, page: int = 10_000, most: int = 1_000_000
) -> AsyncIterator[dict[str, str]]:
    """Rows of a user's SELECT as variables and values, the variable that holds the address first.

    That is the one called `url` or `uri`, else the first that is an IRI; a row without is passed over. There
    are no more than the query's own LIMIT, or `most`. Raises `UsageError` for a query that is not a SELECT,
    and `TamiasError` when the endpoint does not answer.
    """
    asked = question(query)
    client = EndpointClient(http, endpoint, EndpointDialect(), EndpointLimits().most_bytes)
    wanted = most if asked.limit is None else min(asked.limit, most)
    offset = asked.offset
    answer = await _first(client, asked.window(min(page, wanted), offset))
    order = await _order(client, asked, answer, wanted)
    if order:
        answer = await _answer(client, asked.window(min(page, wanted), offset, order))
    while answer.rows:
        for row in answer.rows[:wanted]:
            if found := _addressed(row, answer.variables):
                yield found
        offset += len(answer.rows)
        wanted -= len(answer.rows)
        if wanted <= 0:
            return
        answer = await _answer(client, asked.window(min(page, wanted), offset, order))


async def _order(client: EndpointClient, asked: Question, first: SparqlAnswer, wanted: int) -> str:
    """The order to page in, where there is more than one page and the user gave none."""
    rows = len(first.rows)
    if asked.ordered or rows >= wanted or not first.variables:
        return ""
    more = await _answer(client, asked.window(1, asked.offset + rows))
    return f"ORDER BY {' '.join(f'?{name}' for name in first.variables)}" if more.rows else ""


async def _first(client: EndpointClient, query: str) -> SparqlAnswer:
    """The first answer, in the form of results that the server gives."""
    for results in RESULT_FORMATS[:-1]:
        client.dialect.results = results
        try:
            return await client.answer(query, _TRIES)
        except QueryFailed as failure:
            if failure.final or failure.lasting or failure.capture is None or failure.capture.body is None:
                break
    else:
        client.dialect.results = RESULT_FORMATS[-1]
    return await _answer(client, query)


async def _answer(client: EndpointClient, query: str) -> SparqlAnswer:
    try:
        return await client.answer(query, _TRIES)
    except QueryFailed as failure:
        raise TamiasError(f"no answer from {client.url} to the query: {failure.reason}") from None


def _addressed(row: Row, variables: list[str]) -> dict[str, str] | None:
    """The row with its address first; None when it has none."""
    names = [name for name in variables or row if name in row]
    told = [name for name in names if name.lower() in _ADDRESS_NAMES]
    first = next(iter(told or (name for name in names if row[name].type == "uri")), None)
    if first is None:
        return None
    return {name: row[name].text for name in sorted(names, key=lambda name: name != first)}
