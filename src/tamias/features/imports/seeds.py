"""Import of seeds from files of other crawlers, a batch at a time: there may be millions."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

import msgspec

from tamias.crawl.plan.admit import Admission, open_frontier, same_url
from tamias.crawl.verbs.seed_check import SkippedSeeds, seed_problem
from tamias.database.connect import Session
from tamias.frontier.put import UrlPut
from tamias.frontier.service import NamedQueues, make_crawl
from tamias.frontier.tags import metadata_and_tags
from tamias.model.item import TAGS, Item, Seed
from tamias.model.kind import kind_of, kind_tag
from tamias.model.url import fetch_url
from tamias.plugins import load
from tamias.settings import Settings

AT_ONCE = 2000


class SeedCount(msgspec.Struct):
    """The numbers of new and known seeds."""

    new: int = 0
    known: int = 0


def import_seeds(
    session: Session,
    settings: Settings,
    near: Sequence[str],
    crawl: int,
    files: Iterable[tuple[str, str]],
    skipped: SkippedSeeds,
) -> SeedCount:
    """Put seeds into a crawl; `files` has parts of `tamias.seeds`, and what each reads.

    A seed of another frontier keeps its queue, crawl, date and metadata.
    """
    importer = _SeedImporter(session, settings, near, crawl, skipped)
    seeds = chain.from_iterable(load("seeds", part)().seeds(argument) for part, argument in files)
    while batch := list(islice(seeds, AT_ONCE)):
        importer.put(batch)
    return importer.imported


class _SeedImporter:
    """Puts seeds as our own, and those with metadata of another frontier as its clients would."""

    def __init__(
        self, session: Session, settings: Settings, near: Sequence[str], crawl: int, skipped: SkippedSeeds
    ) -> None:
        self._session = session
        self._admission = Admission(settings, near)
        self._admission.forgotten.refresh(session)
        self._frontier = open_frontier(session, settings)
        self._put = UrlPut(session, same_url(frozenset(settings.filters.session_names)))
        self._crawl = crawl
        self._crawls: dict[str | None, NamedQueues] = {None: NamedQueues(crawl, own_politeness=False)}
        self._skipped = skipped
        self.imported = SeedCount()

    def put(self, batch: Sequence[Seed]) -> None:
        """Put one batch."""
        wanted = list(self._wanted(batch))
        items = [self._item(seed, url) for seed, url in wanted if not _noted(seed)]
        noted = [self._noted_item(seed, url) for seed, url in wanted if _noted(seed)]
        new = self._frontier.put(items)
        taken = sum(self._put.put(noted, shortens=False)) if noted else 0
        self.imported.new += new + taken
        self.imported.known += len(wanted) - new - taken

    def _wanted(self, batch: Sequence[Seed]) -> Iterator[tuple[Seed, str]]:
        for seed in batch:
            problem = seed_problem(seed, self._admission)
            if problem is None:
                yield seed, fetch_url(seed.address)
            else:
                self._skipped.add(seed, problem)

    def _item(self, seed: Seed, url: str) -> Item:
        """Return a URL as an item of ours; tags of another Tamias stay."""
        tags = tuple((seed.metadata or {}).get(TAGS, ())) or seed.tags
        kind = kind_of(tags)
        others = tuple(tag for tag in tags if kind is None or tag != kind_tag(kind))
        named = self._named(seed.crawl)
        item = self._admission.item(url, 0, named.crawl, kind, tags=others)
        return msgspec.structs.replace(item, host=named.host(seed.queue or item.host), due=seed.due)

    def _noted_item(self, seed: Seed, url: str) -> Item:
        metadata, tags = metadata_and_tags(seed.metadata or {})
        named = self._named(seed.crawl)
        return Item(
            url=url,
            key=self._admission.key(url),
            host=named.host(seed.queue or self._admission.queue(url)),
            crawl=named.crawl,
            overwrites=seed.due is not None,
            due=seed.due,
            spelling=None if seed.address == url else seed.address,
            metadata=metadata,
            tags=tags or (),
            keeps_tags=tags is None,
        )

    def _named(self, crawl: str | None) -> NamedQueues:
        if crawl is not None and crawl not in self._crawls:
            self._crawls[crawl] = make_crawl(self._session, crawl)
        return self._crawls[crawl]


def _noted(seed: Seed) -> bool:
    """Return whether another frontier notes something that only a put through the service can store."""
    return seed.metadata is not None and set(seed.metadata) != {TAGS}
