"""Puts resources under watch: into the archive's rows, and into the frontier as due now."""

from collections.abc import Iterable, Sequence

import msgspec

from tamias.archive.sources.catalogues import watch_portals
from tamias.archive.versions.resources import note_wanted, put_resources, read_resources, stop_resources
from tamias.content.formats import FORMATS, media_type_of
from tamias.crawl.plan.admit import Admission
from tamias.database.connect import Session
from tamias.frontier.due import make_due, retire
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.dataset import Dataset, Distribution
from tamias.model.item import TRUSTED, WATCH, Item, Seed
from tamias.model.kind import SITEMAP, format_tag, kind_of
from tamias.model.resource import Resource, Source, resource_id
from tamias.model.url import fetch_url, host, is_address, without_password

BATCH = 1000


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """An address to be put under watch, as somebody named it."""

    url: str
    title: str | None = None
    format: str | None = None
    source: str = ""
    portal: str | None = None
    every: int | None = None
    """How often it is to be visited, in milliseconds."""
    priority: float | None = None


class Added(msgspec.Struct):
    """The result of adding resources to watch."""

    new: int = 0
    known: int = 0
    refused: list[tuple[str, str]] = msgspec.field(default_factory=list)
    """Addresses that a rule keeps out, with the rule."""


class Watcher:
    """Puts resources under watch. One for each thread."""

    def __init__(self, session: Session, frontier: PostgresFrontier, admission: Admission) -> None:
        self._session = session
        self._frontier = frontier
        self._admission = admission

    def add(self, wanted: Iterable[Wanted], *, by_user: bool = False) -> Added:
        """Makes them known and due. Naming one again is harmless; its source is noted.

        What was stopped is watched again if the user names it, not if a portal does.
        """
        added = Added()
        batch: list[Wanted] = []
        for each in wanted:
            batch.append(each)
            if len(batch) == BATCH:
                self._add_batch(batch, added, by_user=by_user)
                batch = []
        self._add_batch(batch, added, by_user=by_user)
        return added

    def add_sources(self, items: Sequence[Item]) -> int:
        """Harvest portals and other sources from now on; return how many were not harvested before.

        One that was stopped or removed begins again with a harvest.
        """
        kinds = [(item, kind_of(item.tags)) for item in items]
        portals = [(item.url, kind) for item, kind in kinds if kind is not None and kind != SITEMAP]
        now = self._session.now()
        begun = self._session.transact(lambda cursor: watch_portals(cursor, portals, now))
        sources = [self._admission.item(url, 0, WATCH, kind, tags=(TRUSTED,)) for url, kind in begun]
        sitemaps = self._frontier.put([item for item, kind in kinds if kind == SITEMAP])
        return sitemaps + make_due(self._session, self._frontier, sources)

    def visit_now(self, seeds: Sequence[Seed]) -> list[str]:
        """Makes what is under watch due; returns the addresses that are not under watch."""
        items = [self._admission.item(fetch_url(seed.address), 0, WATCH, seed.kind) for seed in seeds]
        names = [None if seed.kind else resource_id(self._key(seed.address)) for seed in seeds]
        found = read_resources(self._session, [name for name in names if name])
        known = {each.id for each in found if each.state != "stopped"}
        pairs = list(zip(names, items, strict=True))
        note_wanted(self._session, list(known))
        make_due(
            self._session, self._frontier, [item for name, item in pairs if name is None or name in known]
        )
        return [item.url for name, item in pairs if name is not None and name not in known]

    def stop(self, urls: Sequence[str]) -> list[str]:
        """Stop visits to these URLs, but keep what is stored; return those that were not watched."""
        pairs = [(resource_id(self._key(fetch_url(url))), url) for url in urls if is_address(url)]
        known = {each.id: each.url for each in read_resources(self._session, [name for name, _ in pairs])}
        stop_resources(self._session, list(known))
        items = [self._admission.item(fetch_url(url), 0, WATCH) for name, url in pairs if name in known]
        retire(self._session, self._frontier, items)
        stopped = {url for name, url in pairs if name in known}
        return [url for url in urls if url not in stopped]

    def _add_batch(self, wanted: Sequence[Wanted], added: Added, *, by_user: bool) -> None:
        pairs: list[tuple[Resource, Item]] = []
        self._admission.forgotten.refresh(self._session, now=by_user)
        for each in wanted:
            url = fetch_url(each.url)
            refusal = self._admission.watch_refusal(url)
            if refusal is None:
                resource = self._resource(url, each)
                pairs.append((resource, self._admission.item(url, 0, WATCH, tags=_expected_tags(resource))))
            else:
                added.refused.append((each.url, refusal))
        if not pairs:
            return
        rows = [(resource, host(resource.url)) for resource, _ in pairs]
        names = [resource.id for resource, _ in pairs]
        now = self._session.now()
        before = read_resources(self._session, names)
        known = {each.id: each.state for each in before}
        new = self._session.transact(lambda cursor: put_resources(cursor, rows, now, by_user=by_user))
        self._frontier.put(
            [item for resource, item in pairs if by_user or known.get(resource.id) != "stopped"]
        )
        # Another interval, or a new start, begins with a visit.
        again = [
            item
            for resource, item in pairs
            if by_user and (known.get(resource.id) == "stopped" or (resource.every and resource.id in known))
        ]
        make_due(self._session, self._frontier, again)
        added.new += new
        added.known += len(set(names)) - new

    def _key(self, url: str) -> str:
        return self._admission.key(without_password(url))

    def _resource(self, url: str, wanted: Wanted) -> Resource:
        source = Source(source=wanted.source, portal=wanted.portal, title=wanted.title, format=wanted.format)
        return Resource(
            id=resource_id(self._key(url)),
            url=without_password(url),
            title=wanted.title,
            expected=media_type_of(wanted.format),
            added_at=0,
            every=wanted.every,
            priority=wanted.priority,
            sources=(source,),
        )


def _expected_tags(resource: Resource) -> tuple[str, ...]:
    """Return a tag for a known format; other words of portals would make too many sets of tags."""
    return (format_tag(resource.expected),) if resource.expected in FORMATS else ()


def wanted_of(dataset: Dataset, portal: str) -> list[Wanted]:
    """The forms of a catalogue's dataset that are data and not a page about them."""
    return [
        Wanted(
            url=form.url,
            title=_title(dataset, form),
            format=form.media_type or form.format,
            source=dataset.iri,
            portal=dataset.portal or portal,
        )
        for form in dataset.distributions
        if not form.access_only and form.service is None
    ]


def _title(dataset: Dataset, form: Distribution) -> str:
    return f"{dataset.title}: {form.title}" if form.title and form.title != dataset.title else dataset.title
