"""A month of a continuous crawl with a clock that runs fast: the real frontier, schedule and budget.

Only the Web is drawn: pages that change and pages that appear. Requests cost nothing but a visit.
"""

import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from benchmarks.measuring.targets import BenchmarkTarget, report_targets
from benchmarks.schedule.publishers import TICKS_A_DAY, PublishedPages, draw_pages
from benchmarks.schedule.rules import TICK_MS, Oracle
from tamias.crawl.commit.continuing import ContinuousSchedule, write_planned
from tamias.crawl.plan.admit import Admission, same_url
from tamias.crawl.revisit.visit_budget import Continuing, VisitBudget
from tamias.crawl.store.held_lease import HeldLease
from tamias.crawl.store.visit import Visit
from tamias.database.connect import Database, Session
from tamias.frontier.due.waiting import WAITING
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.capture import Capture, CaptureRecord, Outcome
from tamias.model.item import NEVER
from tamias.model.lease import Done, Lease, Return
from tamias.settings import Settings

Out = Callable[[str], None]
CRAWL: Final = 1
HOSTS_PART: Final = 100
"""Pages on a host."""
VISITS: Final = 0.25
NEW_SHARE: Final = 0.3
KNOWN_PART: Final = 0.8
"""Of the pages that are there on the first day; the others appear one after another."""
BEHIND: Final = 0.05
_HOUR_MS: Final = 3_600_000


class MonthScore(msgspec.Struct, frozen=True):
    """How a month went, after its first third."""

    freshness: float
    """The share of the time, over the pages visited so far, in which we have the newest version."""
    oracle: float
    """The same for who knows every rate, at the same visits to known pages."""
    new: int
    old: int
    most_a_day: int
    budget: float


class SimulatedCrawl:
    """The parts of a crawl that decide on visits, on a clock of their own."""

    def __init__(self, session: Session, pages: int, budget: float) -> None:
        self.now = 1_700_000_000_000
        settings = msgspec.structs.replace(
            Settings(),
            crawl=msgspec.structs.replace(
                Settings().crawl, continuous=True, budget=budget, new_share=NEW_SHARE
            ),
            schedule=msgspec.structs.replace(
                Settings().schedule, knob=0.0, min_interval=TICK_MS / 1000, host_share=1.0
            ),
        )
        self._admission = Admission(settings, ())
        self._session = session
        self._frontier = PostgresFrontier(
            session, same_url=same_url(frozenset()), clock=lambda: self.now, delay_ms=0
        )
        self._schedule = ContinuousSchedule(session, settings, clock=lambda: self.now / 1000)
        self._continuing = Continuing(session, self._frontier, settings, CRAWL, plan_ms=TICK_MS)
        self._budget = VisitBudget(session, CRAWL, budget)
        self._urls = [f"http://h{page // HOSTS_PART}.example/{page}" for page in range(pages)]

    def appear(self, first: int, last: int) -> None:
        """New pages are linked to."""
        for start in range(first, last, 1000):
            items = [
                msgspec.structs.replace(self._admission.item(url, 1, CRAWL), due=WAITING)
                for url in self._urls[start : min(start + 1000, last)]
            ]
            self._frontier.put(items)

    def tick(self, changed: Callable[[int], tuple[bool, str]]) -> tuple[list[int], list[int]]:
        """Hour by hour, leases and visits what is due; returns the new pages and the known ones visited."""
        new: list[int] = []
        old: list[int] = []
        for _ in range(TICK_MS // _HOUR_MS):
            self.now += _HOUR_MS
            self._continuing.step()
            while leases := self._budget.lease(self._frontier, 100, 10, 600.0):
                visits = [
                    self._visit(lease, task, changed, new, old) for lease in leases for task in lease.tasks
                ]
                self._finish(leases, visits)
        return new, old

    def _visit(
        self,
        lease: Lease,
        task: Any,
        changed: Callable[[int], tuple[bool, str]],
        new: list[int],
        old: list[int],
    ) -> Visit:
        page = int(task.url.rpartition("/")[2])
        (new if task.status is Outcome.NEW else old).append(page)
        news, digest = changed(page)
        outcome = Outcome.OK if news or task.status is Outcome.NEW else Outcome.UNCHANGED
        record = CaptureRecord(
            id="", crawl=CRAWL, url=task.url, started_at=self.now, ended_at=self.now, outcome=outcome,
            reason="", depth=1, final_url=task.url, sha256=digest, read=True, worker="", agent="",
        )  # fmt: skip
        capture = Capture(url=task.url, started_at=self.now, ended_at=self.now, outcome=outcome, reason="")
        done = Done(task=task, outcome=outcome, due=NEVER)
        return Visit(task, HeldLease(lease, 0.0, 0.0), capture, done=done, record=record)

    def _finish(self, leases: list[Lease], visits: list[Visit]) -> None:
        plans = self._schedule.plan(visits)
        done: dict[int, list[Done]] = {lease.qid: [] for lease in leases}
        for visit, plan in zip(visits, plans, strict=True):
            assert plan is not None
            done[visit.held.lease.qid].append(msgspec.structs.replace(visit.settled, due=plan.due))
        self._session.transact(lambda cursor: write_planned(cursor, [each for each in plans if each]))
        self._frontier.finish([Return(lease=lease, done=tuple(done[lease.qid])) for lease in leases])


def run(pages: int, days: int, seed: int, out: Out = print) -> dict[str, Any]:
    """Crawls for some days; returns what it printed, as figures."""
    drawn = draw_pages("poisson", pages, days, seed)
    begun = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="tamias-continuous-") as folder,
        closing(Database(Path(folder))) as database,
        closing(database.session()) as session,
    ):
        # What is measured are decisions: a machine that fails may lose the last of them.
        session.transact(lambda cursor: cursor.execute("SET synchronous_commit = off"))
        score = simulate(session, drawn, VISITS * pages)
    out(f"{pages} pages, {days} days, budget {score.budget:g} visits a day, {NEW_SHARE:.0%} for new ones")
    out(f"visits: {score.new} new, {score.old} known; on the busiest day {score.most_a_day}")
    out(f"freshness {score.freshness:.3f}, oracle {score.oracle:.3f} ({time.monotonic() - begun:.0f} s)")
    targets = [
        BenchmarkTarget(
            f"freshness within {BEHIND} of the oracle's",
            f"{score.freshness - score.oracle:+.4f}",
            score.oracle - score.freshness <= BEHIND,
        ),
        BenchmarkTarget(
            "no day spends more than the budget and one burst",
            f"{score.most_a_day / score.budget:.3f} of the budget",
            score.most_a_day <= score.budget * (1 + 2 / 24) + 1,
        ),
    ]
    return {"pages": pages, "days": days, **msgspec.to_builtins(score), **report_targets(targets, out)}


def simulate(session: Session, drawn: PublishedPages, budget: float) -> MonthScore:
    """Ticks through the days: pages change and appear, then the crawl does what it may."""
    ticks, pages = drawn.changes.shape
    crawl = SimulatedCrawl(session, pages, budget)
    there = int(pages * KNOWN_PART)
    crawl.appear(0, there)
    first = ticks // 3
    versions = np.zeros(pages, dtype=np.int64)
    seen = np.full(pages, -1, dtype=np.int64)
    fresh = weight = oracle_fresh = 0.0
    new_count = old_count = 0
    by_day: dict[int, int] = {}
    oracle = _OracleCrawl(drawn)

    def look(page: int) -> tuple[bool, str]:
        news = seen[page] != versions[page]
        seen[page] = versions[page]
        return bool(news), f"{page:032x}{versions[page]:032x}"

    for tick in range(ticks):
        known = seen >= 0
        if tick >= first:
            is_fresh = known & (seen == versions)
            fresh += float(drawn.fresh_until[tick][is_fresh].sum())
            oracle_fresh += oracle.fresh(tick, known)
            weight += int(known.sum())
        versions += drawn.changes[tick]
        oracle.change(tick)
        following = there + int((pages - there) * (tick + 1) / ticks)
        crawl.appear(there + int((pages - there) * tick / ticks), following)
        new, old = crawl.tick(look)
        oracle.visit(tick, new, len(old), known)
        new_count, old_count = new_count + len(new), old_count + len(old)
        day = tick // TICKS_A_DAY
        by_day[day] = by_day.get(day, 0) + len(new) + len(old)
    return MonthScore(
        fresh / weight, oracle_fresh / weight, new_count, old_count, max(by_day.values()), budget
    )


class _OracleCrawl:
    """Visits as many known pages as the crawl does in each tick, and knows how often each changes."""

    def __init__(self, drawn: PublishedPages) -> None:
        self._drawn = drawn
        self._stale = np.ones(len(drawn.rates), dtype=bool)
        self._due = np.full(len(drawn.rates), np.inf)
        self._known = np.zeros(len(drawn.rates), dtype=bool)
        self._old = 1.0

    def fresh(self, tick: int, known: np.ndarray) -> float:
        return float(self._drawn.fresh_until[tick][known & ~self._stale].sum())

    def change(self, tick: int) -> None:
        self._stale |= self._drawn.changes[tick] > 0

    def visit(self, tick: int, new: list[int], old: int, known: np.ndarray) -> None:
        now = (tick + 1) * TICK_MS
        chosen = np.flatnonzero(known)
        if old and len(chosen):
            chosen = chosen[np.argsort(self._due[chosen])[:old]]
        else:
            chosen = np.empty(0, dtype=np.int64)
        pages = np.concatenate([chosen, np.array(new, dtype=np.int64)])
        self._stale[pages] = False
        if tick % TICKS_A_DAY == 0 or tick == 0:
            self._old = max(1.0, old * TICKS_A_DAY)
            self._rule = Oracle(self._drawn.rates[known], self._old) if known.any() else None
            self._places = np.cumsum(known) - 1
        for page in pages.tolist():
            place = int(self._places[page]) if known[page] else -1
            if self._rule is None or place < 0:
                self._due[page] = now + 4 * TICKS_A_DAY * TICK_MS
            else:
                self._due[page] = self._rule.visited(place, now, True)
