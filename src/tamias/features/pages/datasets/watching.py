"""Forms by which a signed-in user visits a dataset now, stops or starts watching it, or sets how often."""

import msgspec

from tamias.features.pages.datasets.dataset_form import SentForm, dataset_form
from tamias.features.service.api.resources import NewResource, add_wanted
from tamias.features.service.http.negotiation import Answer
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service
from tamias.model.item import Seed

PATH = "/dataset/{id}/watching"


def changing(service: Service) -> Answer:
    """Return the handler that takes the form and shows the page again."""
    return dataset_form(service, lambda fields: "crawl" if fields.get("do") == "visit" else "add", _change)


def _change(db: ServiceSession, sent: SentForm) -> None:
    match sent.fields.get("do"):
        case "visit":
            if db.watcher.visit_now([Seed(address=sent.url)]):
                raise HttpProblem(409, "it is not watched any more: watch it again first")
        case "stop":
            db.watcher.stop([sent.url])
        case "watch":
            _watch(db, sent.url, sent.fields)
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
