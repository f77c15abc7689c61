"""Datasets that a site offers as a whole (Semantic Sitemaps): had by the way that troubles their host least.

While such a copy is under way, and once it is had, nothing it covers is asked for one by one.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from random import Random
from typing import Any

import msgspec

from tamias.archive.sites import (
    Covered,
    SiteDataset,
    after,
    covered,
    dataset_key,
    note_claims,
    note_failed,
    note_had,
    others_claims,
    put_site_dataset,
    waiting_claims,
    waiting_for,
)
from tamias.crawl.admit import Admission, first
from tamias.database.connect import Cursor, Session
from tamias.model.access_plan import Access, access_plan
from tamias.model.claim import authoritative, claims, hosts_to_ask
from tamias.model.item import Item
from tamias.model.kind import DUMP, SITEMAP
from tamias.model.lease import Task
from tamias.model.outcome import Outcome
from tamias.model.semantic import SemanticDataset

PART = "part-of-whole"
"""The tag of what is asked for because a dataset is had from there."""
_MOST_ASKED = 5
WAIT_MS = 5000
"""How long an address waits for the copy that covers it before it asks again."""

Also = Callable[[Cursor], None]


class News(msgspec.Struct):
    """What a visit changes: items to put first, then what becomes true with its commit."""

    items: list[Item] = msgspec.field(default_factory=list)
    also: Also | None = None
    why: str | None = None
    """Why this way was chosen; for the record of the visit."""


class Coverage:
    """What need not be asked for one by one, as the database last said."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._covered: list[Covered] = []

    def refresh(self) -> None:
        """For the database's thread, after each lease: so that it knows all that was committed before."""
        self._covered = covered(self._session)

    def of(self, task: Task) -> Covered | None:
        """The dataset that a task's address belongs to, unless it is what the dataset is had from."""
        if not self._covered or PART in task.tags:
            return None
        return next((each for each in self._covered if _belongs(task, each)), None)


def _belongs(task: Task, dataset: Covered) -> bool:
    return (
        task.crawl == dataset.crawl
        and task.url.startswith(dataset.prefixes)
        and task.url not in dataset.urls
        and task.url not in dataset.samples
    )


class Wholes:
    """Chooses and follows the way to each dataset."""

    def __init__(
        self,
        session: Session,
        in_database: Callable[..., Awaitable[Any]],
        admission: Admission,
        now: Callable[[], int],
    ) -> None:
        self._session = session
        self._admission = admission
        self._in_database = in_database
        self._now = now

    async def found(self, task: Task, sitemap: str, datasets: Sequence[SemanticDataset]) -> News:
        """A sitemap describes datasets: the best way to each is put."""
        news: News = await self._in_database(self._found, task, sitemap, datasets)
        return news

    async def visited(self, task: Task, outcome: Outcome, for_good: bool) -> News:
        """A part of a dataset was asked for: it is had, or, if it failed for good, the next way is put."""
        waiting = await self._in_database(waiting_for, self._session, task.crawl, task.url)
        ways = [f"for the dataset of {each.sitemap}: {each.access.why}" for each in waiting if each.access]
        news = News(why="chosen " + ", ".join(ways) if ways else None)
        if outcome in (Outcome.OK, Outcome.UNCHANGED):
            news.also = partial(note_had, crawl=task.crawl, url=task.url)
        elif for_good:
            following = [access for each in waiting if (access := after(each))]
            news.items = [item for access in following for item in self._items(access, task)]
            news.also = partial(_fail, failed=waiting)
        return news

    def _found(self, task: Task, sitemap: str, datasets: Sequence[SemanticDataset]) -> News:
        """With those of other sitemaps that waited for this one to speak."""
        told = [claim for dataset in datasets for claim in claims(dataset, sitemap)]
        self._session.transact(partial(_claim, crawl=task.crawl, told=told))
        waiting = waiting_claims(self._session, task.crawl)
        chosen = [
            self._chosen(task, place, dataset)
            for place, dataset in [*((sitemap, each) for each in datasets), *waiting]
        ]
        news = News(also=partial(_put, found=chosen, now=self._now()))
        for each in chosen:
            if each.access is not None:
                news.items += self._items(each.access, task)
        others = {host for dataset in datasets for host in hosts_to_ask(dataset, sitemap)}
        for host in sorted(others)[:_MOST_ASKED]:
            address = f"http://{host}/sitemap.xml"
            if self._admission.refusal(address, task.depth) is None:
                news.items.append(first(self._admission, address, SITEMAP, task))
        return news

    def _items(self, access: Access, task: Task) -> list[Item]:
        kind = "sparql" if access.kind == "sparql" else DUMP
        return [first(self._admission, url, kind, task, (PART,)) for url in access.urls]

    def _chosen(self, task: Task, sitemap: str, dataset: SemanticDataset) -> SiteDataset:
        key = dataset_key(dataset)
        told = others_claims(self._session, task.crawl, claims(dataset, sitemap))
        sound = frozenset(
            place
            for place in authoritative(dataset, sitemap, told)
            if self._admission.refusal(place, task.depth) is None
        )
        chance = Random(f"{task.crawl} {key.hex()} {time.strftime('%Y-%m-%d', time.gmtime())}")
        plan = access_plan(dataset, "whole", chance, among=sound)
        whole = [access for access in plan if access.kind != "dereference"]
        kept = tuple(prefix for prefix in dataset.prefixes if prefix.iri in sound)
        return SiteDataset(
            crawl=task.crawl,
            key=key,
            sitemap=sitemap,
            state="copying" if whole else "claimed",
            dataset=msgspec.structs.replace(dataset, prefixes=kept) if whole else dataset,
            plan=whole,
            missing=whole[0].urls if whole else (),
        )


def _claim(cursor: Cursor, crawl: int, told: Sequence[Any]) -> None:
    note_claims(cursor, crawl, told)


def _fail(cursor: Cursor, failed: list[SiteDataset]) -> None:
    for each in failed:
        note_failed(cursor, each)


def _put(cursor: Cursor, found: list[SiteDataset], now: int) -> None:
    for each in found:
        put_site_dataset(cursor, each, now)
