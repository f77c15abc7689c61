"""The settlement of a visit: its outcome, due time, record, and the rows to write with it."""

import logging
from collections.abc import Sequence
from http import HTTPStatus

import msgspec

from tamias.analyse.links.discovery import alternates
from tamias.archive.captures import HeldBefore, read_held
from tamias.archive.sources.harvests import keep_context
from tamias.archive.versions.judgement import PAGES, AttemptMeaning, Judgement
from tamias.archive.versions.resources import note_trouble
from tamias.content.formats import is_rdf
from tamias.crawl.analysis.extractor import Extraction
from tamias.crawl.commit.bulk_copies import WAIT_MS, BulkCopies
from tamias.crawl.commit.link_put import CommitContext
from tamias.crawl.commit.page_tags import PageTags, tagged
from tamias.crawl.plan.admit import Reference
from tamias.crawl.plan.fetch_options import user_agent
from tamias.crawl.revisit.change_hints import describe
from tamias.crawl.store.visit import CommitBatch, CommitHook, Visit
from tamias.database.connect import Cursor, Session
from tamias.model.capture import Capture, CaptureRecord, Outcome, new_capture_id
from tamias.model.cut import BELOW, LISTED
from tamias.model.dataset import Dataset
from tamias.model.item import NEVER, WATCH, Item
from tamias.model.kind import AUXILIARY, DUMP, ROBOTS, kind_key, kind_of
from tamias.model.lease import Done, Task
from tamias.model.resource import resource_id
from tamias.model.url import authority, without_password
from tamias.settings import SeedsSettings
from tamias.sinks.outbox import enqueue, enqueue_metadata, sink_numbers

_log = logging.getLogger(__name__)

_NOTHING = Extraction()
_UNASKED = frozenset({Outcome.FAILED, Outcome.REFUSED, Outcome.SKIPPED})


class ContextBody(msgspec.Struct, frozen=True):
    """A body that documents wait for; None where there was none."""

    address: str
    body: bytes | None
    now: int


class DescribedDatasets(msgspec.Struct, frozen=True):
    """The datasets that a page describes; its site counts as the catalogue."""

    portal: str
    harvest: int
    datasets: Sequence[Dataset]


class WatchTrouble(msgspec.Struct, frozen=True):
    """The reason why a watched resource could not be requested."""

    resource: str
    words: str
    now: int


class Settler(CommitHook):
    """Settle visits, wherever they were made, and write what that adds to them."""

    def __init__(self, context: CommitContext, bulk_copies: BulkCopies) -> None:
        self._settings = context.settings
        self._admission = context.admission
        self._now = context.now
        self._agent = user_agent(context.settings)
        self._bulk_copies = bulk_copies
        tags = context.settings.tags
        self._pages = PageTags(tags, context.thread) if tags.content else None

    async def settle(self, visit: Visit) -> None:
        """Adds what is to be committed: the outcome, when the URL is due again, its record and its links."""
        task, held = visit.task, visit.held
        if visit.put_off:
            self._defer(visit)
            return
        # By the outcome of the request: tags are about what came, whatever becomes of it below.
        tags = await self._pages.tags(visit) if self._pages is not None else ()
        self._judge(visit)
        capture = visit.capture
        visit.done = done = tagged(self._done(visit), tags) if tags else self._done(visit)
        capture_id = visit.capture_id or str(new_capture_id(capture.started_at))
        _keep_context(visit, settled=done.due == NEVER)
        why = await self._bulk_copies.take(visit, for_good=done.due == NEVER)
        if visit.found.datasets:
            portal = authority(capture.final_url) + "/"
            visit.extras.append(DescribedDatasets(portal, capture.started_at, visit.found.datasets))
        if visit.archived is None and task.crawl == WATCH:
            self._note_trouble(visit)
        lacking = visit.covering.reason if visit.covering is not None and visit.covering.lacks else None
        if notes := [note for note in (held.granted, why, lacking) if note]:
            reason = "; ".join((capture.reason, *notes))
            visit.capture = capture = msgspec.structs.replace(capture, reason=reason)
        held.granted = None  # the next visit to the host has a permission of its own, or none
        visit.record = self._record(visit, capture_id)
        if self._pages is not None and tags:
            visit.references = self._pages.handed_on(visit.references, tags)
        visit.references += self._redirect_links(capture, task)
        visit.items += self._reached(capture, task, visit.found)
        _let_go(visit)

    def write(self, cursor: Cursor, batch: CommitBatch) -> None:
        """Write the contexts, datasets and troubles of visits."""
        for _, context in batch.extras(ContextBody):
            keep_context(cursor, context.address, context.body, context.now)
        for _, each in batch.extras(DescribedDatasets):
            describe(cursor, each.portal, "schema.org", each.harvest, each.datasets)
        for _, trouble in batch.extras(WatchTrouble):
            note_trouble(cursor, trouble.resource, trouble.words, trouble.now)

    def _defer(self, visit: Visit) -> None:
        """Set a later time for a visit that was not made; its URL stays as it was."""
        task = visit.task
        due = self._now() + WAIT_MS if visit.due is None else visit.due
        visit.drop_findings()
        visit.done = Done(
            task=task,
            outcome=task.status,
            due=due,
            fails=task.fails,
            etag=task.etag,
            last_modified=task.last_modified,
        )

    def _judge(self, visit: Visit) -> None:
        """Change the outcome of the attempt where the findings require it."""
        capture, found = visit.capture, visit.found
        if choices := _choices(capture):
            reason = f"{capture.reason}: {len(choices)} alternates are visited"
            capture = msgspec.structs.replace(capture, outcome=Outcome.OK, reason=reason)
        if found.cut & LISTED:
            found.problems.append(_too_many_listed(self._settings.seeds))
        if found.limit is not None:
            capture = msgspec.structs.replace(capture, outcome=Outcome.FAILED, reason=found.limit)
        visit.capture = capture

    def _note_trouble(self, visit: Visit) -> None:
        """Add why a watched resource could not be requested, if that is so."""
        task, capture = visit.task, visit.capture
        if capture.outcome in _UNASKED and kind_of(task.tags) is None:
            resource = resource_id(self._admission.key(without_password(task.url)))
            words = f"{capture.outcome.word}: {capture.reason}"
            visit.extras.append(WatchTrouble(resource, words, self._now()))

    def _redirect_links(self, capture: Capture, task: Task) -> list[Reference]:
        """Return links to the targets of a redirect that was not followed, at the depth of the URL."""
        last = capture.hops[-1] if capture.hops else None
        if last is None or capture.outcome is not Outcome.OK:
            return []
        targets = _choices(capture) if last.location is None else [last.location]
        return [Reference(targets, last.url, task.depth, task.crawl)] if targets else []

    def _reached(self, capture: Capture, task: Task, found: Extraction) -> tuple[Item, ...]:
        """The addresses that redirects led through, their document now being had, as deep as the task."""
        if capture.outcome is not Outcome.OK:
            return ()
        urls = [hop.url for hop in capture.hops[1:]]
        if kind_of(task.tags) == DUMP:
            urls.append(task.url)
        items = [self._admission.item(url, task.depth, task.crawl) for url in urls]
        cut = BELOW if found.links and self._settings.crawl.depth is not None else 0
        return tuple(msgspec.structs.replace(item, due=NEVER, cut=cut) for item in items)

    def _done(self, visit: Visit) -> Done:
        """Return when the URL is due again: never, unless it is watched or another try can help."""
        task, capture, crawl = visit.task, visit.capture, self._settings.crawl
        wait = int(crawl.retry_wait * 1000) * 2**task.fails
        if capture.retry_after_ms is not None:
            wait = capture.retry_after_ms
            visit.held.blocked_until = self._now() + wait
        due, fails, archived = NEVER, 0, visit.archived
        etag, modified = task.etag, task.last_modified
        if visit.due is not None:  # as if nothing had happened
            due, fails = visit.due, task.fails
        elif archived is not None and task.crawl == WATCH:
            due, fails = archived.next.due_ms, archived.next.history.fails
            if capture.outcome is Outcome.GONE:  # if it comes back, it is to be read
                etag = modified = None
            elif archived.judgement.trusted:
                etag, modified = _validators(task, capture)
        elif capture.retry and task.fails < crawl.retries:
            due, fails, etag, modified = self._now() + wait, task.fails + 1, None, None
        else:
            fails = task.fails if capture.outcome is Outcome.FAILED else 0
            etag, modified = _validators(task, capture)
            if task.crawl == WATCH and kind_of(task.tags) not in {*AUXILIARY, DUMP}:
                due = self._now() + int(self._settings.schedule.harvests * 1000)
            due = due if visit.next_due is None else visit.next_due
        return Done(
            task=task,
            outcome=capture.outcome,
            due=due,
            fails=fails,
            etag=etag,
            last_modified=modified,
            cut=_cut(visit),
        )

    def _record(self, visit: Visit, capture_id: str) -> CaptureRecord:
        """Return the record of one attempt; it has headers only if a version is stored."""
        task, capture, found = visit.task, visit.capture, visit.found
        hops = capture.hops
        if visit.archived is None:
            hops = tuple([msgspec.structs.replace(hop, headers=(), protocol="") for hop in hops])
        return CaptureRecord(
            id=capture_id,
            crawl=task.crawl,
            url=without_password(task.url),
            started_at=capture.started_at,
            ended_at=capture.ended_at,
            outcome=capture.outcome,
            reason=capture.reason,
            depth=task.depth,
            hops=hops,
            final_url=without_password(capture.final_url),
            status=capture.status,
            declared_type=capture.declared_type,
            found_type=found.media_type,
            bytes=found.bytes if capture.body is None else capture.body.size,
            sha256=capture.body.sha256 if capture.body else None,
            read=found.read,
            quads=found.quads,
            links=found.links,
            problems=tuple(found.problems),
            extent=found.extent,
            renamed_graphs=found.renamed_graphs,
            saving_ms=found.saving_ms,
            signals=found.signals,
            worker=str(visit.held.lease.token >> 32),
            agent=self._agent,
            deferred=_is_deferred(visit),
        )


def _let_go(visit: Visit) -> None:
    """The record has it all: what was read is not to wait in memory for the commit."""
    if visit.capture.body is not None or visit.capture.error_body is not None:
        visit.capture = msgspec.structs.replace(visit.capture, body=None, error_body=None)
    visit.found = _NOTHING


def _cut(visit: Visit) -> int | None:
    """Return why links of the visit were cut, as far as known now; None if nothing was read."""
    if visit.capture.cut:
        return visit.capture.cut
    if visit.capture.outcome in (Outcome.OK, Outcome.GONE) or visit.references:
        return visit.found.cut
    return None


def _choices(capture: Capture) -> list[str]:
    """Return the alternates that a 300 response without a preference offers."""
    last = capture.hops[-1] if capture.hops else None
    if last is None or last.status != HTTPStatus.MULTIPLE_CHOICES or last.location is not None:
        return []
    return alternates(last.headers)


def _too_many_listed(settings: SeedsSettings) -> str:
    return (
        "not all that is listed was added: the sitemaps of a host may add "
        f"seeds.host_sitemaps ({settings.host_sitemaps}) files and "
        f"seeds.host_sitemap_urls ({settings.host_sitemap_urls}) URLs"
    )


def _is_deferred(visit: Visit) -> bool:
    """Tell if the attempt will be repeated because the host was unreachable."""
    return visit.due is not None or (visit.capture.unreached is not None and visit.settled.due < NEVER)


def _keep_context(visit: Visit, *, settled: bool) -> None:
    """Add what others wait for; for robots.txt they wait until no further attempt can help."""
    if visit.is_context:
        is_robots, address = kind_of(visit.task.tags) == ROBOTS, visit.task.url
        if settled or not is_robots:
            address = kind_key(address, ROBOTS) if is_robots else address
            visit.extras.append(ContextBody(address, visit.context, visit.capture.ended_at))


def _validators(task: Task, capture: Capture) -> tuple[str | None, str | None]:
    """ETag and Last-Modified for the next visit, if they can be kept and sent."""
    if capture.outcome is Outcome.REFUSED:
        return task.etag, task.last_modified
    last = capture.hops[-1] if capture.hops else None
    etag = last.header("etag") if last else None
    modified = last.header("last-modified") if last else None
    if capture.outcome is Outcome.UNCHANGED:
        etag, modified = etag or task.etag, modified or task.last_modified
    return _printable(etag), _printable(modified)


def _printable(value: str | None) -> str | None:
    return value if value is not None and value.isprintable() else None


SHRUNK = 10
"""A page whose size fell below one part of so many, and whose structured data is gone, is suspicious."""
_READ = (Outcome.OK, Outcome.UNCHANGED)


def _may_have_lost(visit: Visit) -> bool:
    """Tell whether a visit read a document again and found a fault, or a page without structured data."""
    record, task = visit.record, visit.task
    if record is None or record.outcome is not Outcome.OK or not record.read or record.sha256 is None:
        return False
    if kind_of(task.tags) is not None or task.reopened or (task.status is Outcome.NEW and not visit.archived):
        return False
    if record.found_type in PAGES:
        return record.quads == 0
    return bool(record.problems) and is_rdf(record.found_type)


class DoubtReadings(CommitHook):
    """Make suspicious what visits read of documents that said more before.

    What stays so is accepted at the next visit; of a watched resource, after the patience of the archive.
    """

    def __init__(self, session: Session, patience_ms: int) -> None:
        self._session = session
        self._patience_ms = patience_ms

    def prepare(self, visits: Sequence[Visit]) -> None:
        """Look up what doubtful documents said before."""
        records = [(each, each.record) for each in visits if each.record and _may_have_lost(each)]
        if not records:
            return
        places = [(each.held.lease.bucket, record.final_url) for each, record in records]
        held = read_held(self._session, places)
        for visit, record in records:
            before = held.get(record.final_url)
            reason = None if before is None else _doubt(record, before)
            if reason is not None and not _is_accepted(visit, record, self._patience_ms):
                _keep_before(visit, record, reason)


def _doubt(record: CaptureRecord, before: HeldBefore) -> str | None:
    if record.found_type in PAGES:
        if (record.bytes or 0) * SHRUNK >= before.bytes:
            return None
        return f"its structured data is gone, and {record.bytes:,} of {before.bytes:,} bytes are left"
    if record.quads >= before.quads:
        return None
    return f"{record.quads:,} statements could be read, {before.quads:,} before: {record.problems[0]}"


def _is_accepted(visit: Visit, record: CaptureRecord, patience_ms: int) -> bool:
    """Tell whether it has been so for long enough to be what the document has become."""
    if visit.archived is None:
        return visit.task.status not in _READ
    since = visit.archived.watched.known.suspicious_since
    return since is not None and record.ended_at - since >= patience_ms


def _keep_before(visit: Visit, record: CaptureRecord, reason: str) -> None:
    task = visit.task
    visit.record = msgspec.structs.replace(
        record, outcome=Outcome.SKIPPED, reason=f"suspect: {reason}", extent=None, read=False, quads=0
    )
    visit.done = msgspec.structs.replace(
        visit.settled, outcome=Outcome.SKIPPED, etag=task.etag, last_modified=task.last_modified
    )
    visit.references = []
    if visit.archived is not None:
        visit.archived.judgement = Judgement(AttemptMeaning.SUSPECT, reason)


class OutboxHook(CommitHook):
    """Enqueue documents and attempts for the sinks that a crawl names."""

    def __init__(self, session: Session, names: tuple[str, ...]) -> None:
        self._session = session
        self._names = names
        self.refresh()

    def refresh(self) -> None:
        """Read the numbers of the sinks again; for the database's thread."""
        self._sinks = sink_numbers(self._session, self._names)
        self.is_for_every_visit = bool(self._sinks)

    def write(self, cursor: Cursor, batch: CommitBatch) -> None:
        """Enqueue documents that changed, and every attempt."""
        if self._sinks:
            enqueue(cursor, [(lease.bucket, record) for lease, _, record in batch.changed], self._sinks)
            tried = [(each.held.lease.bucket, each.record) for each in batch.visits if each.record]
            enqueue_metadata(cursor, tried, self._sinks)


def outbox_hook(context: CommitContext) -> OutboxHook | None:
    """Return the hook of a crawl; None if it names no sink."""
    names = context.settings.crawl.sinks
    return OutboxHook(context.session, names) if names else None
