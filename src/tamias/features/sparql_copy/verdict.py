"""The verdict at the end of a copy: how much was copied, whether that is all, and how it is known."""

from tamias.features.sparql_copy import queries
from tamias.features.sparql_copy.client import EndpointClient, QueryFailed
from tamias.features.sparql_copy.listing import digest, list_graphs
from tamias.features.sparql_copy.queries import Span
from tamias.features.sparql_copy.state import CopyState
from tamias.model.capture import Outcome
from tamias.model.finding import HarvestEnd

_UNIONS = {
    "": "",
    "said": "; the default graph is the union of the others, as the service description says",
    "seen": "; the default graph holds all statements of the others, which are kept once",
    "sampled": "; the default graph is taken for the union of the others, by a sample",
}


def failed(failure: QueryFailed, state: CopyState) -> HarvestEnd:
    """The end of a copy that cannot go on now."""
    capture = failure.capture
    status = None if capture is None else capture.status
    can_help = status is None or status >= 500 or (capture is not None and capture.retry)
    said = f"stopped after {state.dialect.requests:,} requests"
    return failure.end(said, retry=can_help or state.pages > 0)


async def verdict(client: EndpointClient, state: CopyState) -> HarvestEnd:
    """The end of a copy that came through."""
    doubts = _doubts(state)
    if state.counts and not state.cut_short:
        doubts += await _changes(client, state)
    graphs = f"{state.graphs:,} named graph{'s' * (state.graphs != 1)}"
    form = "CONSTRUCT" if state.triples else "SELECT"
    what = f"{state.statements:,} statements of the default graph and {graphs} by {form}"
    said = "; ".join(doubts) or "the endpoint counts the same in each graph, before and after"
    unreadable = f"; {state.unreadable:,} of them are not RDF and were left out" if state.unreadable else ""
    return HarvestEnd(
        outcome=Outcome.OK,
        reason=f"copied {'whole' if not doubts else 'as far as it could be'}: {what}, in "
        f"{state.dialect.requests:,} requests; {said}{_UNIONS[state.union]}{unreadable}",
        complete=not doubts,
    )


def _doubts(state: CopyState) -> list[str]:
    others = f" (and {state.miscounted - 1} more graphs)" if state.miscounted > 1 else ""
    said = [
        (bool(state.cut_short), f"stopped at {state.cut_short}"),
        (state.abandoned > 0, f"{state.abandoned} parts could not be fetched"),
        (not state.counts, "the endpoint does not count, so that it is all cannot be shown"),
        (state.union == "sampled", "what only the default graph has may be missing"),
        (state.shuffled, "windows did not join: the order changes between requests"),
        (state.relabelled, "blank nodes relabelled: they have other labels in every response"),
        (state.miscounted > 0, f"{state.example}{others}"),
    ]
    return [doubt for holds, doubt in said if holds]


async def _changes(client: EndpointClient, state: CopyState) -> list[str]:
    """Return whether a graph of the endpoint has another count than before the copy."""
    try:
        default = await client.number(queries.COUNT_DEFAULT)
        counted, span = 0, Span()
        while True:
            listing = await list_graphs(client, state, span)
            counted = (counted + digest(listing.graphs)) % (1 << 56)
            if listing.span.is_last:
                break
            span = listing.span.next()
    except QueryFailed:
        return ["the endpoint does not count any more, so that it is all cannot be shown"]
    if (default, counted) != (state.default_count, state.counted):
        return ["the endpoint counts otherwise than before the copy: it changed meanwhile"]
    return []
