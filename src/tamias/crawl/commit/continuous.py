"""Due times for the URLs of a continuous crawl, from earlier visits and from sitemaps.

For the database's thread: what is read here is written in the transaction of the visits.
"""

import random
import time
from collections.abc import Sequence
from typing import Final

import msgspec

from tamias.archive.sources.catalogues import read_trust, write_trust
from tamias.archive.sources.revisits import (
    KnownUrl,
    Revisit,
    UrlHint,
    UrlPlace,
    note_url_hints,
    read_revisits,
    write_revisits,
)
from tamias.archive.versions.resources import promise_visits
from tamias.crawl.plan.admit import Admission
from tamias.crawl.revisit.timetable import ContinuousPlan, PlannedVisit, policy_from, read_plan
from tamias.crawl.store.visit import SEEN, CommitBatch, CommitHook, Visit
from tamias.database.connect import Cursor, Session
from tamias.frontier.due import make_due_known
from tamias.frontier.keys import bucket_of, hash64, host_hash
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.capture import CaptureRecord, Outcome
from tamias.model.item import NEVER, WATCH
from tamias.model.kind import CONTEXT, PROBE, ROBOTS, kind_key, kind_of
from tamias.model.site import Hint
from tamias.model.url import host
from tamias.schedule.hints import ResourceHints, Trust, first_interval, importance_by_priority, said_changed
from tamias.schedule.rules import parse_importance
from tamias.schedule.visit import DAY_MS, NextVisit, Seen, next_visit, pack, unpack
from tamias.settings import Settings

_FRESH_SECONDS: Final = 2.0
_PERMANENT: Final = (301, 308)
_ONCE: Final = frozenset({CONTEXT, ROBOTS})
"""What belongs to other documents is fetched when they are."""
BATCH: Final = 1000


class ContinuousSchedule(CommitHook):
    """Plan the next visits of a crawl that goes on, and write them with those that have ended."""

    def __init__(self, session: Session, frontier: PostgresFrontier, settings: Settings) -> None:
        self._session = session
        self._frontier = frontier
        self._policy = policy_from(settings.schedule)
        self._is_limited = settings.crawl.budget is not None
        self._harvests_ms = int(settings.schedule.harvests * 1000)
        self._gone_visits = settings.schedule.gone_visits
        self._failed_visits = settings.schedule.failed_visits
        self._importance = parse_importance(settings.schedule.importance)
        self._plans: dict[int, tuple[float, ContinuousPlan]] = {}

    def prepare(self, visits: Sequence[Visit]) -> None:
        """Add their next visits, before links are put."""
        ended = [each for each in visits if each.record is not None]
        for each, planned in zip(ended, self._plan(ended) if ended else (), strict=True):
            if planned is not None:
                _add_plan(each, planned)
                self._make_target_due(each, planned)

    def write(self, cursor: Cursor, batch: CommitBatch) -> None:
        """Write what was planned, and promise the visits of resources that nobody watches."""
        planned = [each.planned for each in batch.visits if each.planned is not None]
        if not planned:
            return
        write_revisits(cursor, [each.revisit for each in planned])
        for name, trust in dict(each.trust for each in planned if each.trust is not None).items():
            write_trust(cursor, name, trust.right, trust.checked)
        due = {
            each.archived.watched.id: each.settled.due
            for each in batch.visits
            if each.archived and each.planned
        }
        promise_visits(cursor, due)

    def _make_target_due(self, visit: Visit, planned: PlannedVisit) -> None:
        """Make due where an address moved to for good: it may be known only as the end of a redirect."""
        if planned.moved_due is None:
            return
        for item in visit.items:
            if item.url == _record(visit).final_url:
                qid, uid = host_hash(item.host), hash64(item.key)
                bucket = bucket_of(qid, self._frontier.buckets)
                make_due_known(self._session, self._frontier, bucket, [(qid, item.crawl, uid)])

    def _plan(self, visits: Sequence[Visit]) -> list[PlannedVisit | None]:
        """Plan visits with a record; None for what is not visited again, or is tried again soon anyway."""
        places = [_place(each) if _goes_on(each) else None for each in visits]
        known = read_revisits(self._session, [place for place in places if place is not None])
        hosts = {host(each.task.url) for each in visits}
        tested = any(each.hint_at is not None for each in known.values())
        trust = read_trust(self._session, list(hosts)) if tested else {}
        return [
            None if place is None else self._planned(each, place, known.get(place, KnownUrl()), trust)
            for each, place in zip(visits, places, strict=True)
        ]

    def _planned(
        self,
        visit: Visit,
        place: UrlPlace,
        known: KnownUrl,
        trust: dict[str, tuple[int, int]],
    ) -> PlannedVisit:
        record, task = _record(visit), visit.task
        same = record.sha256 is not None and record.sha256 == known.sha256
        seen = SEEN[visit.archived.judgement.meaning] if visit.archived else _seen(record, same)
        importance = self._importance.of_url(task.tags, task.score) * importance_by_priority(known.priority)
        before = unpack(known.history)
        found = next_visit(
            before,
            seen,
            record.ended_at,
            expected_days=self._expected(known, record.ended_at) if before.visited_at is None else None,
            threshold=self._plan_of(task.crawl).thresholds.of(visit.held.lease.host),
            importance=importance,
            policy=self._policy,
            chance=random.random(),
            is_limited=self._is_limited,
        )
        moved = _is_moved(record)
        due = self._due(record, known, found, seen, moved)
        return PlannedVisit(
            revisit=Revisit(
                place=place,
                sha256=record.sha256 if record.outcome is Outcome.OK else None,
                history=pack(found.history),
                rate=None if due == NEVER or moved else found.rate,
                importance=importance,
                visited_at=found.history.visited_at,
                moved=moved,
            ),
            due=due,
            same=same and record.outcome is Outcome.OK and not task.reopened,
            moved_due=found.due_ms if moved else None,
            trust=_tested(known, seen, record.ended_at, host(task.url), trust),
        )

    def _due(self, record: CaptureRecord, known: KnownUrl, found: NextVisit, seen: Seen, moved: bool) -> int:
        """Return when the URL is due; one that moved for good is visited only once more."""
        if moved:
            longest = record.ended_at + int(self._policy.terms.maximum * DAY_MS)
            return NEVER if known.moved else longest
        allowed = self._gone_visits if seen == "gone" else self._failed_visits
        if seen in {"gone", "failed"} and found.history.fails >= allowed:
            return NEVER
        if record.sha256 is None and record.outcome is Outcome.OK:
            return record.ended_at + self._harvests_ms  # a harvest, or a redirect to elsewhere
        return found.due_ms

    def _expected(self, known: KnownUrl, now: int) -> float | None:
        return first_interval(
            ResourceHints(frequency=known.frequency, modified_at=known.hint_at), now, self._policy.terms
        )

    def _plan_of(self, crawl: int) -> ContinuousPlan:
        read_at, plan = self._plans.get(crawl, (float("-inf"), ContinuousPlan()))
        if time.monotonic() > read_at + _FRESH_SECONDS:
            plan = read_plan(self._session, crawl)
            self._plans[crawl] = (time.monotonic(), plan)
        return plan


class CrawlHints:
    """Takes what sitemaps say of the URLs of a crawl, and makes due what a trusted host says has changed."""

    def __init__(self, session: Session, frontier: PostgresFrontier, admission: Admission) -> None:
        self._session = session
        self._frontier = frontier
        self._admission = admission

    def take(self, crawl: int, hints: Sequence[Hint], kind: str | None = None) -> int:
        """Returns how many URLs, all of one kind, became due by it."""
        wanted = [each for each in hints if self._admission.refusal(each.url, 1) is None]
        return sum(
            self._take(crawl, wanted[start : start + BATCH], kind) for start in range(0, len(wanted), BATCH)
        )

    def _take(self, crawl: int, hints: Sequence[Hint], kind: str | None) -> int:
        places = {self._place_of(crawl, each.url, kind): each for each in hints}
        said = [
            UrlHint(
                place=place, changed_at=each.lastmod_ms, frequency=each.changefreq, priority=each.priority
            )
            for place, each in places.items()
        ]
        known = note_url_hints(self._session, said)
        trust = read_trust(self._session, list({host(each.url) for each in hints}))
        now = self._session.now()
        due: dict[int, list[tuple[int, int, int]]] = {}
        for place, visited_at, changed_at in known:
            if visited_at is None or changed_at is None or not said_changed(changed_at, visited_at, now):
                continue
            if Trust(*trust.get(host(places[place].url), (0, 0))).earned:
                due.setdefault(place.bucket, []).append((place.qid, place.crawl, place.uid))
        return sum(
            make_due_known(self._session, self._frontier, bucket, urls) for bucket, urls in due.items()
        )

    def _place_of(self, crawl: int, url: str, kind: str | None) -> UrlPlace:
        qid = host_hash(self._admission.queue(url))
        uid = hash64(kind_key(self._admission.key(url), kind))
        return UrlPlace(bucket_of(qid, self._frontier.buckets), qid, crawl, uid)


def _add_plan(visit: Visit, planned: PlannedVisit) -> None:
    """Add a plan to its visit: a body that was read before is no news, and a target of a move is due."""
    task, record, done = visit.task, _record(visit), visit.settled
    done = msgspec.structs.replace(done, due=planned.due, fails=0)
    if record.outcome is Outcome.GONE:
        done = msgspec.structs.replace(done, etag=None, last_modified=None)
    elif record.outcome in {Outcome.FAILED, Outcome.REFUSED}:
        done = msgspec.structs.replace(done, etag=task.etag, last_modified=task.last_modified)
    if planned.same and visit.archived is None:
        visit.record = msgspec.structs.replace(
            record, outcome=Outcome.UNCHANGED, extent=None, read=False, quads=0, reason="same content"
        )
        done = msgspec.structs.replace(done, outcome=Outcome.UNCHANGED)
    if planned.moved_due is not None:
        visit.items = [
            msgspec.structs.replace(item, due=planned.moved_due) if item.url == record.final_url else item
            for item in visit.items
        ]
    visit.done, visit.planned = done, planned


def _record(visit: Visit) -> CaptureRecord:
    assert visit.record is not None
    return visit.record


def _place(visit: Visit) -> UrlPlace:
    task, lease = visit.task, visit.held.lease
    return UrlPlace(lease.bucket, lease.qid, task.crawl, task.uid)


def _goes_on(visit: Visit) -> bool:
    """Tell if the visit is complete and its URL is visited repeatedly."""
    kind, outcome = kind_of(visit.task.tags), _record(visit).outcome
    if visit.task.crawl == WATCH or visit.settled.due < NEVER or kind in _ONCE:
        return False
    if kind == PROBE:
        return outcome in {Outcome.OK, Outcome.UNCHANGED}
    return outcome is not Outcome.SKIPPED


def _seen(record: CaptureRecord, same: bool) -> Seen:
    if record.outcome is Outcome.OK:
        return "unchanged" if same else "changed"
    if record.outcome is Outcome.UNCHANGED:
        return "unchanged"
    return "gone" if record.outcome is Outcome.GONE else "failed"


def _is_moved(record: CaptureRecord) -> bool:
    """Tell if the address was redirected permanently."""
    if record.outcome not in {Outcome.OK, Outcome.UNCHANGED} or not record.hops:
        return False
    first = record.hops[0]
    return first.status in _PERMANENT and first.location is not None


def _tested(
    known: KnownUrl, seen: Seen, now: int, name: str, trust: dict[str, tuple[int, int]]
) -> tuple[str, Trust] | None:
    """Return the new trust in the host's sitemap dates, if the visit tested one."""
    if known.hint_at is None or known.visited_at is None or seen not in {"changed", "unchanged", "noise"}:
        return None
    said = said_changed(known.hint_at, known.visited_at, now)
    after = Trust(*trust.get(name, (0, 0))).after(said, seen == "changed")
    trust[name] = (after.right, after.checked)
    return name, after
