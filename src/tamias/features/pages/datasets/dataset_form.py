"""A form on the page of a dataset: who sends it, of which dataset, and the page again when it is done."""

from collections.abc import Callable

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tamias.access.tokens import AccessScope
from tamias.features.pages.html.forms import check_form, form_caller, form_fields
from tamias.features.pages.queries import resource_named
from tamias.features.service.http.identify import caller_name
from tamias.features.service.http.negotiation import Answer
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service


class SentForm(msgspec.Struct, frozen=True):
    """A form that a permitted user sent about a dataset."""

    url: str
    fields: dict[str, str]
    by_whom: str


def dataset_form(
    service: Service,
    scope_of: Callable[[dict[str, str]], AccessScope],
    change: Callable[[ServiceSession, SentForm], None],
) -> Answer:
    """Return the handler that makes the change (it may raise `HttpProblem`) and shows the page again."""

    async def answer(request: Request) -> Response:
        fields = await form_fields(request)
        if await form_caller(request, fields, service) is None:
            raise HttpProblem(403, "sign in first, and send the form from the page of the dataset")
        named = request.path_params["id"]
        url = (await service.pool.run(lambda db: resource_named(db, named))).url
        await check_form(request, service, scope_of(fields), [url])
        sent = SentForm(url, fields, caller_name(request))
        await service.pool.run(lambda db: change(db, sent))
        service.histories.cache.forget_all()
        return RedirectResponse(f"/dataset/{named}", 303)

    return answer
