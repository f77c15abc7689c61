"""What a visit means: its outcome, when the URL is due again, its record, and what is put with it."""

from collections.abc import Callable
from functools import partial
from http import HTTPStatus

import msgspec

from tamias.analyse.links.header import alternates
from tamias.archive.sources.harvests import keep_context
from tamias.archive.versions.resources import note_trouble
from tamias.crawl.analysing.extractor import Extraction
from tamias.crawl.commit.bulk_copies import WAIT_MS, Also, BulkCopies
from tamias.crawl.commit.link_put import CommitContext
from tamias.crawl.commit.tagging import PageTags, tagged
from tamias.crawl.plan.admit import Reference
from tamias.crawl.plan.fetch_options import user_agent
from tamias.crawl.revisit.archiver import ArchiveResult
from tamias.crawl.revisit.change_hints import describe
from tamias.crawl.store.visit import Visit
from tamias.database.connect import Cursor
from tamias.frontier.service.state import WATCH
from tamias.model.capture import Capture, CaptureRecord, Outcome, new_capture_id
from tamias.model.cut import BELOW, LISTED
from tamias.model.item import NEVER, Item
from tamias.model.kind import AUXILIARY, DUMP, ROBOTS, kind_key, kind_of
from tamias.model.lease import Done, Task
from tamias.model.resource import resource_id
from tamias.model.url import authority, without_password
from tamias.settings import SeedsSettings

_NOTHING = Extraction()
_UNASKED = frozenset({Outcome.FAILED, Outcome.REFUSED, Outcome.SKIPPED})


class Settler:
    """Settles visits, wherever they were made."""

    def __init__(self, context: CommitContext) -> None:
        self._settings = context.settings
        self._admission = context.admission
        self._archiver = context.sinks.archiver
        self._now = context.now
        self._agent = user_agent(context.settings)
        self._bulk_copies = BulkCopies(context.thread, context.admission)
        self._pages = PageTags(context.settings.tags, context.thread)

    async def settle(self, visit: Visit) -> None:
        """Adds what is to be committed: the outcome, when the URL is due again, its record and its links."""
        task, held = visit.task, visit.held
        if visit.put_off:
            due = self._now() + WAIT_MS if visit.due is None else visit.due
            visit.drop_findings()
            visit.done = _again_at(due, task, task.status)
            return
        # By the outcome of the request: tags are about what came, whatever becomes of it below.
        told = await self._pages.told(visit)
        self._judge(visit)
        capture = visit.capture
        visit.done = done = tagged(self._done(visit), told)
        capture_id = visit.capture_id or str(new_capture_id(capture.started_at))
        if keep := _context(visit, settled=done.due == NEVER):
            visit.also.append(keep)
        why = await self._bulk_copies.take(visit, for_good=done.due == NEVER)
        if describe_datasets := _described(visit.found, capture):
            visit.also.append(describe_datasets)
        if visit.archived is None and (note := self._trouble(task, capture)):
            visit.also.append(note)
        lacking = visit.covering.reason if visit.covering is not None and visit.covering.lacks else None
        if notes := [note for note in (held.granted, why, lacking) if note]:
            reason = "; ".join((capture.reason, *notes))
            visit.capture = capture = msgspec.structs.replace(capture, reason=reason)
        held.granted = None  # the next visit to the host has a permission of its own, or none
        visit.record = self._record(visit, capture_id)
        visit.references = [
            *self._pages.handed_on(visit.references, told),
            *self._redirect_links(capture, task),
        ]
        visit.items += self._reached(capture, task, visit.found)
        visit.afterwards = self._settle(visit)
        _let_go(visit)

    def _judge(self, visit: Visit) -> None:
        """What was found may make another outcome of the attempt."""
        capture, found = visit.capture, visit.found
        if choices := _choices(capture):
            reason = f"{capture.reason}: {len(choices)} alternates are visited"
            capture = msgspec.structs.replace(capture, outcome=Outcome.OK, reason=reason)
        if found.cut & LISTED:
            found.problems.append(_too_many_listed(self._settings.seeds))
        if found.limit is not None:
            capture = msgspec.structs.replace(capture, outcome=Outcome.FAILED, reason=found.limit)
        visit.capture = capture

    def _trouble(self, task: Task, capture: Capture) -> Callable[[Cursor], None] | None:
        """A watched resource that could not be asked for at all."""
        if task.crawl != WATCH or capture.outcome not in _UNASKED or kind_of(task.tags) is not None:
            return None
        resource = resource_id(self._admission.key(without_password(task.url)))
        trouble, now = f"{capture.outcome.word}: {capture.reason}", self._now()
        return lambda cursor: note_trouble(cursor, resource, trouble, now)

    def _redirect_links(self, capture: Capture, task: Task) -> list[Reference]:
        """Where the last redirect leads, if it was not followed, or its choices: as deep as the URL."""
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

    def _settle(self, visit: Visit) -> Callable[[bool], None] | None:
        archiver, archived, others = self._archiver, visit.archived, visit.afterwards
        if archived is None or archiver is None:
            return others

        def settle(committed: bool) -> None:
            archiver.settle(archived)
            if others is not None:
                others(committed)

        return settle

    def _watched_again(self, visit: Visit, archived: ArchiveResult) -> Done:
        """When a resource under watch is due again. A suspicious response leaves the old validators.

        What is gone leaves none: if it comes back, it is to be read.
        """
        task, capture = visit.task, visit.capture
        etag, modified = _validators(task, capture) if archived.trusted else (task.etag, task.last_modified)
        if capture.outcome is Outcome.GONE:
            etag = modified = None
        return Done(
            task=task,
            outcome=capture.outcome,
            due=archived.next.due_ms,
            fails=archived.next.history.fails,
            etag=etag,
            last_modified=modified,
            cut=_cut(visit),
        )

    def _done(self, visit: Visit) -> Done:
        """When the URL is due again: never, unless it is under watch, or trying again can help and may."""
        task, capture, held = visit.task, visit.capture, visit.held
        if capture.retry_after_ms is not None:
            held.blocked_until = self._now() + capture.retry_after_ms
        if visit.due is not None:
            return _again_at(visit.due, task, capture.outcome, _cut(visit))
        if visit.archived is not None and task.crawl == WATCH:
            return self._watched_again(visit, visit.archived)
        wait = int(self._settings.crawl.retry_wait * 1000) * 2**task.fails
        if capture.retry_after_ms is not None:
            wait = capture.retry_after_ms
        if capture.retry and task.fails < self._settings.crawl.retries:
            due, fails = self._now() + wait, task.fails + 1
            return Done(task=task, outcome=capture.outcome, due=due, fails=fails, cut=_cut(visit))
        fails = task.fails if capture.outcome is Outcome.FAILED else 0
        etag, modified = _validators(task, capture)
        due = NEVER
        if task.crawl == WATCH and kind_of(task.tags) not in {*AUXILIARY, DUMP}:
            due = self._now() + int(self._settings.schedule.harvests * 1000)
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
        """What is kept of one attempt; headers only where a version is."""
        task, capture, found = visit.task, visit.capture, visit.found
        hops = capture.hops
        if visit.archived is None:
            hops = tuple([msgspec.structs.replace(hop, headers=()) for hop in hops])
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
            told_type=capture.told_type,
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


def _again_at(due: int, task: Task, outcome: Outcome, cut: int | None = None) -> Done:
    """The URL is tried again as if nothing had happened."""
    return Done(
        task=task,
        outcome=outcome,
        due=due,
        fails=task.fails,
        etag=task.etag,
        last_modified=task.last_modified,
        cut=cut,
    )


def _let_go(visit: Visit) -> None:
    """The record has it all: what was read is not to wait in memory for the commit."""
    if visit.capture.body is not None or visit.capture.error_body is not None:
        visit.capture = msgspec.structs.replace(visit.capture, body=None, error_body=None)
    visit.found = _NOTHING


def _cut(visit: Visit) -> int | None:
    """What cut the links of a visit, as far as is known before they are put; None if nothing was read."""
    if visit.capture.cut:
        return visit.capture.cut
    if visit.capture.outcome in (Outcome.OK, Outcome.GONE) or visit.references:
        return visit.found.cut
    return None


def _choices(capture: Capture) -> list[str]:
    """What a 300 without a preference offers."""
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
    """Whether the attempt is repeated because nobody could be reached."""
    return visit.due is not None or (visit.capture.unreached is not None and visit.settled.due < NEVER)


def _context(visit: Visit, *, settled: bool) -> Also | None:
    """What others wait for; for robots.txt they wait until no further attempt can help."""
    if not visit.is_context:
        return None
    is_robots, address = kind_of(visit.task.tags) == ROBOTS, visit.task.url
    if is_robots and not settled:
        return None
    address = kind_key(address, ROBOTS) if is_robots else address
    return partial(keep_context, address=address, body=visit.context, now=visit.capture.ended_at)


def _described(found: Extraction, capture: Capture) -> Also | None:
    """What a page says of datasets: its site counts as the catalogue."""
    if not found.datasets:
        return None
    place = authority(capture.final_url) + "/"
    return partial(
        describe, portal=place, kind="schema.org", harvest=capture.started_at, datasets=found.datasets
    )


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
