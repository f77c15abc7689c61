"""The form on the page of a dataset by which it, or one version, is forgotten. Needs the scope `forget`."""

from tamias.archive.forgetting.tombstones import LONGEST_REASON
from tamias.crawl.verbs.forgetting.orders import find_target, put_tombstone
from tamias.serve.http.problems import HttpProblem
from tamias.serve.pages.datasets.dataset_form import SentForm, dataset_form
from tamias.serve.pages.html.page import Answered
from tamias.serve.queries.thread_pool import ServiceSession
from tamias.serve.service import Service

PATH = "/dataset/{id}/forget"
_MOST_DIGITS = 9


def forgetting(service: Service) -> Answered:
    """What takes the form, and shows the page again: with the tombstone, or nothing else."""
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
