"""The form on the page of a dataset by which it, or one version, is forgotten. Needs the scope `forget`."""

from functools import partial

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tamias.archive.forgetting.tombstones import LONGEST_REASON
from tamias.crawl.verbs.forgetting.orders import find_target, put_tombstone
from tamias.serve.access.routes import caller_name
from tamias.serve.http.problems import HttpProblem
from tamias.serve.pages.html.forms import check_form, form_caller, form_fields
from tamias.serve.pages.html.page import Answered
from tamias.serve.pages.queries import resource_named
from tamias.serve.queries.thread_pool import ServiceSession
from tamias.serve.service import Service

PATH = "/dataset/{id}/forget"
_MOST_DIGITS = 9


def forgetting(service: Service) -> Answered:
    """What takes the form, and shows the page again: with the tombstone, or nothing else."""

    async def answer(request: Request) -> Response:
        fields = await form_fields(request)
        if await form_caller(request, fields, service) is None:
            raise HttpProblem(403, "sign in first, and send the form from the page of the dataset")
        named = request.path_params["id"]
        url = (await service.pool.run(lambda db: resource_named(db, named))).url
        await check_form(request, service, "forget", [url])
        by_whom = caller_name(request)
        await service.pool.run(partial(_forget, url=url, fields=fields, by_whom=by_whom))
        service.histories.kept.forget_all()
        return RedirectResponse(f"/dataset/{named}", 303)

    return answer


def _forget(db: ServiceSession, url: str, fields: dict[str, str], by_whom: str) -> None:
    number, reason = fields.get("version", ""), fields.get("reason", "")
    if fields.get("sure") != "yes":
        raise HttpProblem(422, "confirm that it is to be removed for good: nobody can bring it back")
    if number and not (number.isdecimal() and len(number) <= _MOST_DIGITS):
        raise HttpProblem(422, "'version' is the number of a version, or empty for all of them")
    if not reason or len(reason) > LONGEST_REASON:
        raise HttpProblem(422, f"give a reason of at most {LONGEST_REASON} characters; whoever asks is told")
    names = frozenset(db.settings.filters.session_names)
    target = find_target(db.session, url, int(number) if number else None, names)
    put_tombstone(db.session, target, reason, by_whom)
