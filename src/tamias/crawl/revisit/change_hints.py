"""Information from sources about resources: datasets of catalogues, and hints that one changed."""

from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from tamias.archive.sources.catalogues import (
    NAMED,
    Said,
    note_datasets,
    note_hints,
    put_named_portal,
    read_trust,
)
from tamias.archive.sources.claim import authoritative
from tamias.crawl.plan.admit import Admission
from tamias.database.connect import Cursor, Session
from tamias.frontier.due import make_due
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.dataset import Dataset
from tamias.model.errors import UrlError
from tamias.model.item import WATCH
from tamias.model.site import Hint, SemanticDataset
from tamias.model.url import fetch_url
from tamias.plugins import load_all
from tamias.schedule.hints import Trust, said_changed


def describe(cursor: Cursor, portal: str, kind: str, harvest: int, datasets: Sequence[Dataset]) -> None:
    """Store the descriptions of datasets inside a transaction; repeating it is harmless.

    Datasets of which a query names the portal are described as that portal's too.
    """
    note_datasets(cursor, portal, kind, harvest, datasets)
    for note in load_all("claims").values():
        note(cursor, portal, datasets)
    for named in sorted({each.portal for each in datasets if each.portal} - {portal}):
        if put_named_portal(cursor, named, portal, harvest):
            own = [replace(each, portal=None) for each in datasets if each.portal == named]
            describe(cursor, named, NAMED, harvest, own)


BATCH = 1000


class ChangeHints:
    """Notes hints, and makes due what a trusted host says has changed. For the database's thread."""

    def __init__(self, session: Session, frontier: PostgresFrontier, admission: Admission) -> None:
        self._session = session
        self._frontier = frontier
        self._admission = admission

    def take(self, said: Sequence[Said]) -> int:
        """Returns how many resources became due by it."""
        return sum(self._take(said[start : start + BATCH]) for start in range(0, len(said), BATCH))

    def _take(self, said: Sequence[Said]) -> int:
        claimed = note_hints(self._session, said)
        if not claimed:
            return 0
        trust = read_trust(self._session, list({each.host for each in claimed}))
        now = self._session.now()
        due = [
            self._admission.item(each.url, 0, WATCH)
            for each in claimed
            if each.changed_at is not None
            and Trust(*trust.get(each.host, (0, 0))).earned
            and said_changed(each.changed_at, each.visited_at, now)
        ]
        return make_due(self._session, self._frontier, due) if due else 0


def said_by_sitemap(hints: Sequence[Hint]) -> list[Said]:
    """Return the hints of a sitemap as rows."""
    return [Said(hint.url, hint.lastmod_ms, hint.changefreq) for hint in hints]


def dump_hints(datasets: Sequence[SemanticDataset], sitemap: str) -> list[Hint]:
    """Return the hints of a Semantic Sitemap about the dumps of its own host."""
    return [
        Hint(url=place.url, lastmod_ms=dataset.lastmod_ms, changefreq=dataset.changefreq)
        for dataset in datasets
        if dataset.lastmod_ms is not None or dataset.changefreq is not None
        for place in (*dataset.dumps, *dataset.fragments)
        if place.url in authoritative(dataset, sitemap, ())
    ]


def said_by_catalogue(datasets: Sequence[Dataset]) -> list[Said]:
    """Return the hints of a catalogue about the distributions of its datasets."""
    said = []
    for dataset in datasets:
        for form in dataset.distributions:
            changed_at = _milliseconds(form.modified or dataset.modified)
            try:
                said.append(Said(fetch_url(form.url), changed_at, dataset.frequency))
            except UrlError:
                continue
    return said


def _milliseconds(text: str | None) -> int | None:
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    try:
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    except (OverflowError, OSError):
        return None
