"""The form on the page of a dataset by which it, or one version, is forgotten. Needs the scope `forget`."""

from tamias.archive.tombstones import LONGEST_REASON, find_target, put_tombstone
from tamias.features.pages.datasets.dataset_form import SentForm, dataset_form
from tamias.features.service.http.negotiation import Answer
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service

PATH = "/dataset/{id}/forget"
_MOST_DIGITS = 9


def forgetting(service: Service) -> Answer:
    """Return the handler that forgets what the form names and shows the page again."""
    return dataset_form(service, lambda _fields: "forget", _forget)


def _forget(db: ServiceSession, sent: SentForm) -> None:
    number, reason = sent.fields.get("version", ""), sent.fields.get("reason", "")
    if sent.fields.get("sure") != "yes":
        raise HttpProblem(422, "confirm that it is to be removed for good: nobody can bring it back")
    if number and not (number.isdecimal() and len(number) <= _MOST_DIGITS):
        raise HttpProblem(422, "'version' is the number of a version, or empty for all of them")
    if not reason or len(reason) > LONGEST_REASON:
        raise HttpProblem(422, f"give a reason of at most {LONGEST_REASON} characters; whoever asks is told")
    names = frozenset(db.settings.filters.session_names)
    target = find_target(db.session, sent.url, int(number) if number else None, names)
    put_tombstone(db.session, target, reason, sent.by_whom)
