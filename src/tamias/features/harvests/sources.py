"""Portals and other sources: what each has, how its harvests went, and how they are steered."""

from collections.abc import Sequence
from typing import Any

import msgspec

from tamias.archive.moments import of_row
from tamias.archive.reader.library import NotArchived
from tamias.crawl.plan.admit import Admission
from tamias.crawl.revisit.watches import Watcher
from tamias.database.columns import Ints, Longs
from tamias.database.connect import Session
from tamias.features.harvests.jobs import CUT_OFF, SQL
from tamias.frontier.due import make_due, retire
from tamias.frontier.postgres import PostgresFrontier
from tamias.frontier.put import by_bucket, numbered
from tamias.model.capture import Outcome
from tamias.model.errors import UsageError
from tamias.model.item import NEVER, TRUSTED, WATCH, Item
from tamias.model.url import fetch_url, is_address
from tamias.schedule.rules import seconds_of, span_of

FINDER = "portal"
"""The kind of an address where a portal is to be found."""
USUAL = "auto"
"""The interval that leaves it to the setting `schedule.harvests`."""
_GOOD = (Outcome.OK.value, Outcome.UNCHANGED.value, Outcome.SKIPPED.value)
_BATCH = 1000


class PortalState(msgspec.Struct, frozen=True, kw_only=True):
    """A portal, or another source that is harvested."""

    url: str
    kind: str
    """Its software or protocol; `portal` until that is found out."""
    state: str
    """`waiting` for its first harvest, `harvesting`, `active`, `failing`, `stopped`, `removed`; `named` by a
    query, or `known` only from pages and crawls."""
    datasets: int
    gone: int
    """Datasets that it listed once."""
    files: int
    added_at: str
    last_harvest: str | None
    """When the latest harvest ended."""
    whole_at: str | None
    """When it was last seen as a whole."""
    next_harvest: str | None
    every: str
    """How often it is harvested, such as `1d`; `auto` is the setting `schedule.harvests`."""
    trouble: str | None
    """Why the latest harvest failed, as it is stored; null when it did not."""
    named_by: str | None
    """The query that names its datasets."""


class HarvestEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A harvest of a portal, as it is listed."""

    started_at: str
    kind: str
    state: str
    """`running`, `cut off` where its worker died, or the outcome: ok, unchanged, failed, …"""
    ended_at: str | None
    seconds: float | None
    reason: str
    requests: int
    added: int
    changed: int
    vanished: int
    failed: int
    """Records that could not be read."""


class Sources:
    """The sources of an archive. One for each thread."""

    def __init__(self, session: Session, frontier: PostgresFrontier, admission: Admission) -> None:
        self._session = session
        self._frontier = frontier
        self._admission = admission
        self.watcher = Watcher(session, frontier, admission)

    def page(self, after: str = "", limit: int = 1000, *, known: bool = True) -> list[PortalState]:
        """Return portals after a given one, also those `known` only from pages and crawls.

        Those that were removed are left out.
        """
        return self._states(after, limit, None, known=known)

    def find(self, url: str) -> PortalState:
        """Return the portal of an address. Raises `NotArchived` where none is known."""
        names = [url, fetch_url(url)] if is_address(url) else [url]
        for name in names:
            if row := self._session.fetch_one(SQL["find"], {"url": name}):
                return self._states("", 1, row[0])[0]
        raise NotArchived(f"no portal is known at {url[:200]}; 'tamias portals' lists those that are")

    def harvests(self, url: str, before: int = NEVER, limit: int = 100) -> list[HarvestEntry]:
        """Return the harvests of a portal that began before a time, the newest first."""
        portal = self.find(url)
        values = {"url": portal.url, "before": before, "limit": limit}
        _, is_leased = self._visits([self._item(portal)]).get(0, (None, False))
        return [_harvest(row, is_leased) for row in self._session.fetch_all(SQL["harvests"], values)]

    def steer(self, action: str, url: str, interval: str = "") -> str:
        """Harvest a portal now, stop, resume or remove it, or set how often; return what is said of it.

        A harvest that is under way ends with its next step where its portal is stopped or removed.
        """
        portal = self._steered(url)
        match action:
            case "resume":
                self.watcher.add_sources([self._item(portal)])
            case "stop":
                self._end(portal, "stopped")
                return "stopped; its files are still watched"
            case "remove":
                self._end(portal, "removed")
                stopped = self.stop_files(portal.url)
                return f"removed; {stopped:,} files are no longer watched, their versions stay"
            case "every":
                every = None if interval == USUAL else seconds_of(interval) * 1000
                self._session.execute(SQL["set_interval"], {"url": portal.url, "every": every})
        if action == "harvest" and portal.state in ("stopped", "removed"):
            raise UsageError(f"{portal.url} is {portal.state}; 'tamias portals resume' harvests it again")
        if portal.state not in ("stopped", "removed"):
            make_due(self._session, self._frontier, [self._item(portal)])
        return f"harvested every {interval}" if action == "every" else "due now"

    def stop_files(self, url: str) -> int:
        """Stop watching what only this portal names; return how many files."""
        stopped, values = 0, {"url": url, "after": "", "limit": _BATCH}
        while rows := self._session.fetch_all(SQL["portal_files"], values):
            files = [file for (file,) in rows]
            stopped += len(files) - len(self.watcher.stop(files))
            values["after"] = files[-1]
        return stopped

    def hand_over(self, url: str, kind: str | None, roots: Sequence[str]) -> None:
        """Harvest the portals that were found at an address of them."""
        for root in roots:
            if self._admission.watch_refusal(root) is None:
                item = self._admission.item(root, 0, WATCH, kind, tags=(TRUSTED,))
                self.watcher.add_sources([item])
                self._session.execute(SQL["found"], {"url": url, "found": item.url})

    def _steered(self, url: str) -> PortalState:
        """Return a portal that somebody added. Raises `UsageError`."""
        portal = self.find(url)
        if portal.named_by is not None:
            raise UsageError(f"{portal.url} is named by a query; name that: {portal.named_by}")
        if portal.state == "known":
            raise UsageError(f"{portal.url} is not harvested; 'tamias add --portal' harvests it")
        return portal

    def _end(self, portal: PortalState, state: str) -> None:
        self._session.execute(SQL["end_harvests"], {"url": portal.url, "state": state})
        retire(self._session, self._frontier, [self._item(portal), self._item(portal, FINDER)])

    def _item(self, portal: PortalState, kind: str | None = None) -> Item:
        return self._admission.item(portal.url, 0, WATCH, kind or portal.kind, tags=(TRUSTED,))

    def _states(self, after: str, limit: int, url: str | None, *, known: bool = True) -> list[PortalState]:
        values = {"after": after, "limit": limit, "url": url, "known": known}
        rows = self._session.fetch_all(SQL["portals"], values)
        items = [self._admission.item(row[0], 0, WATCH, row[1]) for row in rows]
        visits = self._visits(items)
        return [_state(row, *visits.get(place, (None, False))) for place, row in enumerate(rows)]

    def _visits(self, items: Sequence[Item]) -> dict[int, tuple[int | None, bool]]:
        """Return when items are visited next, and whether they may be visited now, by their positions."""
        found: dict[int, tuple[int | None, bool]] = {}
        now = self._session.now()
        for bucket, offered in by_bucket(numbered(items, 0)[0], self._frontier.buckets).items():
            values = {
                "bucket": bucket, "watch": WATCH, "place": Ints([each.first for each in offered]),
                "qid": Longs([each.qid for each in offered]), "uid": Longs([each.uid for each in offered]),
            }  # fmt: skip
            for place, due, lease_end, blocked_until in self._session.fetch_all(SQL["places"], values):
                found[place] = (None if due == NEVER else max(due, blocked_until), lease_end > now)
        return found


def _state(row: Sequence[Any], due: int | None, is_leased: bool) -> PortalState:
    """Return a portal by its row, when its URL is due, and whether somebody visits its host."""
    url, kind, state, every, added_at, named_by, *counts, ended_at, outcome, reason, running = row
    if running is not None and not is_leased:
        outcome, reason, ended_at = None, CUT_OFF, running
    trouble = reason if ended_at is not None and outcome not in _GOOD else None
    if named_by is not None:
        state = "named"
    elif not state:
        state = "known"
    elif state == "active" and running is not None and is_leased:
        state = "harvesting"
    elif state == "active" and trouble:
        state = "failing"
    elif state == "active" and ended_at is None:
        state = "waiting"
    shown = (url, kind, state, *counts[:3], added_at, ended_at, counts[3], due)
    interval = USUAL if every is None else span_of(every / 1000)
    return of_row(PortalState, shown, every=interval, trouble=trouble, named_by=named_by)


def _harvest(row: Sequence[Any], is_leased: bool) -> HarvestEntry:
    started_at, _, ended_at, outcome, *_ = row
    if ended_at is None and not is_leased:
        row = (*row[:4], CUT_OFF, *row[5:])
    unknown = "running" if ended_at is None and is_leased else "cut off"
    state = unknown if outcome is None else Outcome(outcome).word
    seconds = None if ended_at is None else (ended_at - started_at) / 1000
    return of_row(HarvestEntry, (*row[:3], *row[4:]), state=state, seconds=seconds)
