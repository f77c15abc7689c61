"""What a signed-in user does with the URLs of a crawl that brought nothing: they are made due again."""

from functools import partial
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tamias.archive.reader.library import NotArchived
from tamias.frontier.due.reopen import ReopenFilter, reopen_visited
from tamias.model.capture import Outcome
from tamias.serve.access.identify import check_caller
from tamias.serve.http.problems import HttpProblem
from tamias.serve.pages.html.forms import check_form, form_caller, form_fields
from tamias.serve.pages.html.page import Answered
from tamias.serve.pages.queries import forget_lately, rows
from tamias.serve.queries.thread_pool import ServiceSession
from tamias.serve.service import Service

PATH = "/crawl/{name}/reopen"
_OUTCOMES = {
    each.word: each.value for each in (Outcome.GONE, Outcome.REFUSED, Outcome.FAILED, Outcome.SKIPPED)
}


def reopening(service: Service) -> Answered:
    """What takes the form, and shows the page again."""

    async def answer(request: Request) -> Response:
        fields = await form_fields(request)
        caller = await form_caller(request, fields, service)
        if caller is None:
            raise HttpProblem(403, "sign in first, and send the form from the page of the crawl")
        check_caller(caller, "crawl", bounded=False)
        name = request.path_params["name"]
        await check_form(request, service, "crawl", [])
        outcome, reason = _OUTCOMES.get(fields.get("outcome", "")), fields.get("reason", "")
        if outcome is None or not reason:
            raise HttpProblem(400, f"'outcome' is one of {', '.join(_OUTCOMES)}, and 'reason' a text")
        which = ReopenFilter(outcome=outcome, reason=reason)
        count = await service.pool.run(partial(_reopen, name=name, which=which))
        forget_lately(service, f"crawl {name}")
        return RedirectResponse(f"/crawl/{quote(name, safe='')}?reopened={count}", 303)

    return answer


def _reopen(db: ServiceSession, name: str, which: ReopenFilter) -> int:
    found = rows(db, "crawl_named", crawl=name)
    if not found:
        raise NotArchived(f"there is no crawl {name!r}; /frontier lists all")
    return reopen_visited(db.session, db.frontier, found[0][0], which)
