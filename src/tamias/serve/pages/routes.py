"""All pages and what belongs to them, as routes of the application."""

from collections.abc import Callable, Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tamias.plugins import load_all
from tamias.serve.access.identify import reason_of
from tamias.serve.http.endpoints import Endpoint, note_call, note_failure
from tamias.serve.pages import access, overview, portal, portal_at, query, search, sign_in, snapshots
from tamias.serve.pages.crawl import add, crawl, documents, frontier, graph, host, hosts, reopening
from tamias.serve.pages.datasets import dataset, difference, forgetting, listing, preview, version, watching
from tamias.serve.pages.html.page import Answered, guarded, page_routes
from tamias.serve.pages.html.static import static_route
from tamias.serve.pages.reference import reference_page
from tamias.serve.service import Service

_PAGES = (
    overview.PAGE,
    search.PAGE,
    listing.PAGE,
    difference.PAGE,
    preview.PAGE,
    version.PAGE,
    dataset.PAGE,
    hosts.PAGE,
    host.PAGE,
    portal.LIST,
    portal.PAGE,
    portal_at.PAGE,
    snapshots.LIST,
    snapshots.PAGE,
    frontier.PAGE,
    crawl.PAGE,
    documents.LIST,
    documents.PAGE,
    graph.PAGE,
    query.PAGE,
    add.PAGE,
    sign_in.PAGE,
    access.PAGE,
)


def routes_of_pages(service: Service, endpoints: Sequence[Endpoint]) -> list[Route]:
    """The pages; `endpoints` are those that the page about the API lists."""
    return [
        static_route(),
        Route("/query/send", guarded("/query/send", query.sent), methods=["GET"]),
        Route("/overview/live", guarded("/overview/live", overview.live_part(service)), methods=["GET"]),
        *page_routes([*_PAGES, *load_all("pages").values(), reference_page(endpoints)], service),
        *(_form(path, make(service), service) for path, make in FORMS.items()),
    ]


FORMS: dict[str, Callable[[Service], Answered]] = {
    add.PAGE.path: add.adding,
    sign_in.PAGE.path: sign_in.signing_in,
    "/sign-out": sign_in.signing_out,
    watching.PATH: watching.changing,
    forgetting.PATH: forgetting.forgetting,
    reopening.PATH: reopening.reopening,
    reopening.RESUME_PATH: reopening.resuming,
    access.PAGE.path: access.changing,
}
"""What pages send. Each finds out who sends it (`form_caller`) and what they may do (`check_form`)."""


def _form(path: str, answered: Answered, service: Service) -> Route:
    """A form, noted in the audit log if its sender is known."""

    async def noted(request: Request) -> Response:
        try:
            answer = await answered(request)
        except Exception as error:  # noqa: BLE001 - every error is noted
            raise await note_failure(request, service, f"POST {path}", error) from None
        outcome = "ok" if answer.status_code < 400 else f"{answer.status_code} {reason_of(request)}".strip()
        await note_call(request, service, f"POST {path}", outcome)
        return answer

    return Route(path, guarded(path, noted), methods=["POST"])
