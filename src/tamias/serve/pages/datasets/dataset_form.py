"""A form on the page of a dataset: who sends it, of which dataset, and the page again when it is done."""

from collections.abc import Callable

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tamias.serve.access.routes import caller_name
from tamias.serve.access.tokens import AccessScope
from tamias.serve.http.problems import HttpProblem
from tamias.serve.pages.html.forms import check_form, form_caller, form_fields
from tamias.serve.pages.html.page import Answered
from tamias.serve.pages.queries import resource_named
from tamias.serve.queries.thread_pool import ServiceSession
from tamias.serve.service import Service


class SentForm(msgspec.Struct, frozen=True):
    """What somebody who may do so wants done with a dataset."""

    url: str
    fields: dict[str, str]
    by_whom: str


def dataset_form(
    service: Service,
    scope_of: Callable[[dict[str, str]], AccessScope],
    change: Callable[[ServiceSession, SentForm], None],
) -> Answered:
    """What takes the form, makes the change (which may raise `HttpProblem`), and shows the page again."""

    async def answer(request: Request) -> Response:
        fields = await form_fields(request)
        if await form_caller(request, fields, service) is None:
            raise HttpProblem(403, "sign in first, and send the form from the page of the dataset")
        named = request.path_params["id"]
        url = (await service.pool.run(lambda db: resource_named(db, named))).url
        await check_form(request, service, scope_of(fields), [url])
        sent = SentForm(url, fields, caller_name(request))
        await service.pool.run(lambda db: change(db, sent))
        service.histories.kept.forget_all()
        return RedirectResponse(f"/dataset/{named}", 303)

    return answer
