"""What a signed-in user does with a dataset on its page: visit it now, stop, watch again, say how often."""

from functools import partial

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tamias.model.item import Seed
from tamias.serve.api.resources import NewResource, add_wanted
from tamias.serve.http.problems import HttpProblem
from tamias.serve.pages.html.forms import check_form, form_caller, form_fields
from tamias.serve.pages.html.page import Answered
from tamias.serve.pages.queries import resource_named
from tamias.serve.queries.thread_pool import ServiceSession
from tamias.serve.service import Service

PATH = "/dataset/{id}/watching"


def changing(service: Service) -> Answered:
    """What takes the form, and shows the page again."""

    async def answer(request: Request) -> Response:
        fields = await form_fields(request)
        if await form_caller(request, fields, service) is None:
            raise HttpProblem(403, "sign in first, and send the form from the page of the dataset")
        named = request.path_params["id"]
        url = (await service.pool.run(lambda db: resource_named(db, named))).url
        await check_form(request, service, "crawl" if fields.get("do") == "visit" else "add", [url])
        await service.pool.run(partial(_change, named=named, fields=fields))
        service.histories.kept.forget_all()
        return RedirectResponse(f"/dataset/{named}", 303)

    return answer


def _change(db: ServiceSession, named: str, fields: dict[str, str]) -> None:
    url = resource_named(db, named).url
    match fields.get("do"):
        case "visit":
            if db.watcher.visit_now([Seed(address=url)]):
                raise HttpProblem(409, "it is not watched any more: watch it again first")
        case "stop":
            db.watcher.stop([url])
        case "watch":
            _watch(db, url, fields)
        case _:
            raise HttpProblem(400, "'do' is one of visit, stop, watch")


def _watch(db: ServiceSession, url: str, fields: dict[str, str]) -> None:
    told = {"url": url, "every": fields.get("every") or None, "priority": fields.get("priority") or None}
    try:
        wanted = msgspec.convert(told, NewResource, strict=False)
    except msgspec.ValidationError as error:
        raise HttpProblem(422, f"this cannot be done: {error}") from error
    taken = add_wanted(db, [wanted])
    if taken.refused:
        raise HttpProblem(422, f"it cannot be watched: {taken.refused[0].reason}")
