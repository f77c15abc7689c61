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
    crawl_rates,
    note_url_hints,
    read_figure,
    read_revisits,
    write_figure,
    write_revisits,
)
from tamias.archive.versions.resources import promise_visits
from tamias.crawl.plan.admit import Admission
from tamias.crawl.revisit.timetable import PlannedVisit, VisitBudget, policy_from, share_visits
from tamias.crawl.store.visit import SEEN, CommitBatch, CommitHook, Visit
from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.frontier.due import count_waiting, make_due_known, release_waiting
from tamias.frontier.keys import bucket_of, hash64, host_hash
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.capture import CaptureRecord, Outcome
from tamias.model.item import NEVER, WATCH
from tamias.model.kind import CONTEXT, PROBE, ROBOTS, kind_key, kind_of
from tamias.model.site import Hint
from tamias.model.url import host
from tamias.schedule.hints import ResourceHints, Trust, first_interval, importance_by_priority, said_changed
from tamias.schedule.rules import parse_importance
from tamias.schedule.visit import DAY_MS, NextVisit, Seen, Thresholds, next_visit, pack, unpack
from tamias.settings import Settings

_FRESH_SECONDS: Final = 2.0
_PERMANENT: Final = (301, 308)
_ONCE: Final = frozenset({CONTEXT, ROBOTS})
"""What belongs to other documents is fetched when they are."""
BATCH: Final = 1000
_PLAN_PART: Final = 10
_LONGEST_PLAN_MS: Final = 600_000
_SHORTEST_PLAN_MS: Final = 1_000
_RELEASE_MS: Final = 500
_PAGE: Final = 1000
_SQL = statements(__package__, "continuous.sql")


class ContinuousPlan(msgspec.Struct, frozen=True):
    """The division of a crawl's visits among its URLs, for all workers."""

    thresholds: Thresholds = Thresholds()
    new_per_day: float = 0.0
    """URLs that are visited for the first time."""
    known_per_day: float = 0.0
    """Visits to URLs that were visited before."""
    planned_at: int = 0


def read_plan(session: Session, crawl: int) -> ContinuousPlan:
    """Return the plan that was made last."""
    return msgspec.convert(read_figure(session, _figure(crawl)) or {}, ContinuousPlan)


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
        hints = ResourceHints(frequency=known.frequency, modified_at=known.hint_at)
        is_first = before.visited_at is None
        found = next_visit(
            before,
            seen,
            record.ended_at,
            expected_days=first_interval(hints, record.ended_at, self._policy.terms) if is_first else None,
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


class Continuing:
    """The regular work of a continuous crawl's supervisor, in the database's thread."""

    def __init__(
        self,
        session: Session,
        frontier: PostgresFrontier,
        settings: Settings,
        crawl: int,
        *,
        plan_ms: float | None = None,
    ) -> None:
        """`plan_ms`: between two plans; unless given, a tenth of the shortest interval, or ten minutes."""
        self._session = session
        self._frontier = frontier
        self._settings = settings
        self._crawl = crawl
        self._plan = read_plan(session, crawl)
        shortest = settings.schedule.min_interval * 1000 / _PLAN_PART
        self._plan_ms = plan_ms or min(_LONGEST_PLAN_MS, max(_SHORTEST_PLAN_MS, shortest))
        self._released_at = 0

    def open(self) -> int:
        """Makes due what was read before the crawl went on; returns how many URLs."""
        opened = 0
        for bucket in range(self._frontier.buckets):
            parameters = {"bucket": bucket, "crawl": self._crawl, "page": _PAGE}
            made = 1
            while made and (places := self._session.fetch_all(_SQL["find_unplanned"], parameters)):
                named = [(qid, self._crawl, uid) for qid, uid in places]
                made = make_due_known(self._session, self._frontier, bucket, named)
                opened += made
        return opened

    def step(self) -> None:
        """Plans anew if it is time, and releases what may be released."""
        now = self._frontier.now()
        if now - self._plan.planned_at >= self._plan_ms:
            self.plan()
        budget = self._settings.crawl.budget
        if budget is not None and now - self._released_at >= _RELEASE_MS:
            self._released_at = now
            self._release(now, budget)

    def plan(self) -> ContinuousPlan:
        """Shares out the visits by all that is known now."""
        rows = crawl_rates(self._session, self._crawl, self._frontier.buckets)
        new, known = self._shares(len(rows))
        found = share_visits(rows, self._settings.schedule, known)
        self._plan = ContinuousPlan(found, new, known, self._frontier.now())
        write_figure(self._session, _figure(self._crawl), self._plan, self._plan.planned_at)
        return self._plan

    def _shares(self, known: int) -> tuple[float, float]:
        """Visits a day to new and to known URLs: what one side cannot use is the other's."""
        schedule, budget = self._settings.schedule, self._settings.crawl.budget
        if budget is None:
            return 0.0, schedule.visits_each * known
        most = known * DAY_MS / 1000 / schedule.min_interval
        new = max(budget * self._settings.crawl.new_share, budget - most)
        waiting = count_waiting(self._session, self._frontier, self._crawl, int(new) + 1)
        return new, max(budget - min(new, waiting), budget * 1e-6)

    def _release(self, now: int, budget: float) -> None:
        VisitBudget(self._session, self._crawl, budget).visits(now)
        parameters = {"crawl": self._crawl, "now": now, "per_ms": self._plan.new_per_day / DAY_MS}
        rows = self._session.fetch_all(_SQL["grant_releases"], parameters)
        if rows[0][0]:
            release_waiting(self._session, self._frontier, self._crawl, int(rows[0][0]))


def _figure(crawl: int) -> str:
    return f"visits of crawl {crawl}"
