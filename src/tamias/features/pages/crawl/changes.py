"""Changes of crawled documents between two times: by host, predicate and document."""

from starlette.requests import Request

from tamias.features.pages.html.page import CsvTable, page
from tamias.features.pages.queries import Record
from tamias.features.service.api.graphs import PATH, graph_changes
from tamias.features.service.http.exchange import parameter
from tamias.features.service.service import Service

_PARTS = ("hosts", "predicates", "documents")


def _table(view: Record) -> CsvTable:
    found = [(part, getattr(view["changes"], part, {})) for part in _PARTS]
    rows = [(part[:-1], name, n.added, n.removed) for part, counted in found for name, n in counted.items()]
    return CsvTable(("of", "name", "added", "removed"), rows)


@page("/documents/changes", "document_changes.html", data=PATH, elsewhere=True, table=_table)
async def document_changes(request: Request, service: Service) -> Record:
    """Return the changes from `since` to `until`; none where no time is named."""
    times = {name: parameter(request, name) for name in ("since", "until")}
    return {**times, "changes": await graph_changes(request, service) if any(times.values()) else None}
