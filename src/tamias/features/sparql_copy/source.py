"""The source of statements: CONSTRUCT in N-Triples, or rows where that does not work."""

from collections.abc import Awaitable, Callable, Sequence, Sized

from pyoxigraph import NamedNode, Quad

from tamias.features.sparql_copy import queries
from tamias.features.sparql_copy.client import EndpointClient, QueryFailed
from tamias.features.sparql_copy.state import CopyPart, CopyState
from tamias.features.sparql_copy.terms import StatementPage


class StatementSource:
    """Requests statements in the one form that the state names: labels differ between forms."""

    def __init__(self, client: EndpointClient, state: CopyState) -> None:
        self._client = client
        self._state = state

    async def matching(
        self, where: str, limit: int, offset: int = 0, *, order: bool = False
    ) -> StatementPage:
        """A window of the statements of a pattern. Raises `QueryFailed`."""
        query = (queries.construct if self._state.triples else queries.select)(
            where, limit, offset, order=order
        )
        if self._state.triples:
            page = StatementPage(await self._client.triples(query))
        else:
            page = StatementPage.of_rows(await self._client.select(query))
        if page.rows == limit:
            self._state.most = max(self._state.most, limit)
        return page

    async def window(self, part: CopyPart, limit: int, offset: int = 0) -> StatementPage:
        """A window of a part, its statements in their graph. Raises `QueryFailed`."""
        where = self.pattern(part)
        page = await self.matching(where, limit, offset, order=part.way == "ordered")
        if part.graph is not None:
            name = NamedNode(part.graph)
            page.quads = [Quad(quad.subject, quad.predicate, quad.object, name) for quad in page.quads]
        return page

    def pattern(self, part: CopyPart) -> str:
        """The pattern of what a part holds."""
        blank = queries.BLANK + f" || {queries.TRIPLE_TERM}" * self._state.triple_terms
        content = {"all": "", "blank": blank, "ground": f"!({blank})"}[part.content]
        return queries.statements(part.graph, content=content, own=part.own, span=part.span)

    async def graphs(self, names: Sequence[str], limit: int) -> StatementPage:
        """Return all statements of several graphs. Raises `QueryFailed`."""
        if not self._state.triples:
            return StatementPage.of_rows(await self._client.select(queries.select_graphs(names, limit)))
        graphs = [NamedNode(name) for name in names]
        predicates: dict[str, tuple[NamedNode, NamedNode]] = {}
        page = StatementPage(await self._client.triples(queries.construct_graphs(names, limit)))
        for at, quad in enumerate(page.quads):
            text = quad.predicate.value
            if text not in predicates:
                predicates[text] = _unnumbered(text, graphs)
            predicate, graph = predicates[text]
            page.quads[at] = Quad(quad.subject, predicate, quad.object, graph)
        return page


def _unnumbered(predicate: str, graphs: Sequence[NamedNode]) -> tuple[NamedNode, NamedNode]:
    """The predicate and the graph whose number stands before it."""
    try:
        _, number, name = predicate.split(":", 2)
        return NamedNode(name), graphs[int(number)]
    except (ValueError, IndexError):
        raise QueryFailed(f"answered with the predicate {predicate[:100]!r}, which no graph has") from None


async def uncut(state: CopyState, rows: int, limit: int, probe: Callable[[], Awaitable[Sized]]) -> bool:
    """Return whether these rows are all; `probe` requests one more, which is right in any order."""
    if rows >= limit:
        return False
    if rows >= state.most:
        if len(await probe()):
            state.learn_cap(rows)
            return False
        state.most = rows
    return True
