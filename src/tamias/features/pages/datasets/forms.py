"""Forms on the page of a dataset: watch, visit or forget it, and show the page again."""

from collections.abc import Callable

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tamias.archive.tombstones import LONGEST_REASON, find_target, put_tombstone
from tamias.features.pages.html.forms import check_form, sent_form
from tamias.features.service.api.resources import NewResource, add_wanted
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.history import resource_named
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service
from tamias.features.tokens.tokens import AccessScope
from tamias.model.item import Seed


async def dataset_form(
    request: Request,
    service: Service,
    scope_of: Callable[[dict[str, str]], AccessScope],
    change: Callable[[ServiceSession, str, dict[str, str], str], None],
) -> Response:
    """Make the change of a URL, which may raise `HttpProblem`, and show its page again."""
    fields, caller = await sent_form(request, service)
    named = request.path_params["id"]
    url = (await service.pool.run(lambda db: resource_named(db, named))).url
    await check_form(request, service, scope_of(fields), [url])
    await service.pool.run(lambda db: change(db, url, fields, caller.name))
    service.histories.cache.forget_all()
    return RedirectResponse(f"/dataset/{named}", 303)


WATCHING = "/dataset/{id}/watching"


async def changing(request: Request, service: Service) -> Response:
    """Visit a dataset now, stop or start watching it, or set how often."""
    return await dataset_form(
        request, service, lambda fields: "crawl" if fields.get("do") == "visit" else "add", _change
    )


def _change(db: ServiceSession, url: str, fields: dict[str, str], _: str) -> None:
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
    given = {"url": url, "every": fields.get("every") or None, "priority": fields.get("priority") or None}
    try:
        wanted = msgspec.convert(given, NewResource, strict=False)
    except msgspec.ValidationError as error:
        raise HttpProblem(422, f"this cannot be done: {error}") from error
    taken = add_wanted(db, [wanted])
    if taken.refused:
        raise HttpProblem(422, f"it cannot be watched: {taken.refused[0].reason}")


FORGETTING = "/dataset/{id}/forget"
_MOST_DIGITS = 9


async def forgetting(request: Request, service: Service) -> Response:
    """Forget what the form names, and show the page again."""
    return await dataset_form(request, service, lambda _fields: "forget", _forget)


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
