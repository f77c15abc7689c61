"""The routes of all pages and forms."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tamias.features.pages import access, overview, query
from tamias.features.pages.crawl import activity, add, changes, crawl, documents, graph, host, steering
from tamias.features.pages.datasets import dataset, forms, listing, preview, version
from tamias.features.pages.html.page import page_routes, static_route
from tamias.features.pages.reference import reference_page
from tamias.features.service.app import all_endpoints
from tamias.features.service.http.callers import record_of
from tamias.features.service.http.endpoints import Handle, note_call, note_failure
from tamias.features.service.http.exchange import guarded_route
from tamias.features.service.service import Service
from tamias.plugins import load_all

_PAGES = (
    overview.overview,
    overview.statistics,
    listing.search,
    listing.datasets,
    version.difference,
    preview.preview_page,
    version.version_page,
    dataset.dataset,
    host.hosts,
    host.host,
    activity.frontier,
    steering.crawls,
    crawl.crawl,
    documents.documents,
    documents.document,
    changes.document_changes,
    graph.graph,
    query.query,
    add.add,
    access.sign_in,
    access.access,
)


def add_routes(service: Service, routes: Sequence[BaseRoute]) -> list[BaseRoute]:
    """Return the routes of the service with those of all pages."""
    return [
        *routes,
        static_route(),
        guarded_route("/query/send", query.sent),
        guarded_route("/overview/live", lambda request: overview.live_part(request, service)),
        *page_routes([*_PAGES, *load_all("pages").values(), reference_page(all_endpoints())], service),
        *(form_route(path, handle, service) for path, handle in FORMS.items()),
    ]


FORMS: dict[str, Handle] = {
    add.add.path: add.adding,
    access.sign_in.path: access.signing_in,
    "/sign-out": access.signing_out,
    forms.WATCHING: forms.changing,
    forms.FORGETTING: forms.forgetting,
    crawl.PATH: crawl.reopening,
    steering.crawls.path: steering.making,
    steering.STEERING: steering.steering,
    access.access.path: access.changing,
}
"""What pages send. Each finds out who sends it (`form_caller`) and what they may do (`check_form`)."""


def form_route(path: str, handle: Handle, service: Service) -> Route:
    """Return the route of a form, noted in the audit log if its sender is known."""

    async def noted(request: Request) -> Response:
        try:
            answer = await handle(request, service)
        except Exception as error:  # noqa: BLE001 - every error is noted
            raise await note_failure(request, service, f"POST {path}", error) from None
        refused = f"{answer.status_code} {record_of(request).reason}".strip()
        await note_call(request, service, f"POST {path}", "ok" if answer.status_code < 400 else refused)
        return answer

    return guarded_route(path, noted, "POST")
