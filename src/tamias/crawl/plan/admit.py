"""Admission: resolve the references of documents, filter them and make new ones items of the frontier."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from tamias.analyse.tags.content import TagRules
from tamias.archive.sources.host_links import HostLinks
from tamias.crawl.plan.fetch_options import address_of
from tamias.crawl.plan.forgotten_urls import ForgottenUrls
from tamias.filters.url_filters import DEFAULT_SCHEMES, PatternFilter
from tamias.model.cut import BELOW, DEPTH, FILTER, SCOPE
from tamias.model.errors import UrlError
from tamias.model.finding import Worded, Words
from tamias.model.item import MOST_DEPTH, WATCH, Item, Seed
from tamias.model.kind import ROBOTS, kind_key, kind_of, kind_tag
from tamias.model.lease import Task
from tamias.model.url import authority, fetch_url, host, host_key, resolve, site_of, url_key, without_session
from tamias.permit.delay import host_delay_ms
from tamias.plugins import load, load_all
from tamias.protocols import Filter, ListFilter
from tamias.settings import Settings

if TYPE_CHECKING:  # what is typed is checked before the database's library, which takes long to load
    from tamias.database.connect import Session
    from tamias.frontier.lease_filter import LeaseFilter
    from tamias.frontier.postgres import PostgresFrontier

SCORE_HALVED_BY_DEPTH = 0.5
_ANY_PATH = "/a/path/that/no-expression/means"
"""Whoever excludes this and robots.txt as well excludes the host."""
FIRST = 2.0
"""A score above all that a link can have; with `LONG_DUE` before all others of the host."""
LONG_DUE = 1


class Reference(msgspec.Struct, frozen=True, gc=False):
    """Links of one document: as they stand in it, what they are relative to, and how deep they lead."""

    references: Sequence[str]
    base: str
    depth: int
    crawl: int
    kind: str | None = None
    """What stands there, as far as the document says."""
    tags: tuple[str, ...] = ()
    score: float | None = None
    """Set where the depth does not decide it."""
    listed: bool = False
    """Whether a sitemap lists them: then their number is bounded for each host."""
    words: dict[str, Words] = {}
    """Of the references, where these have come from elsewhere; otherwise see `words_of`."""


def words_of(reference: Reference) -> dict[str, Words]:
    """The words that links stand among, by reference; empty where nobody wants them."""
    if isinstance(reference.references, Worded):
        return reference.references.words
    return reference.words


def with_words(reference: Reference) -> Reference:
    """The same, so that the words can be sent elsewhere."""
    words = words_of(reference)
    return msgspec.structs.replace(reference, words=words) if words else reference


class KnownLinks:
    """A worker's memory of links that the frontier knows, and how deep: at least the `size / 2` seen last.

    Forgetting one only costs a put. Two generations: when the young one is full it becomes the old one, and
    the old one is dropped.
    """

    def __init__(self, size: int) -> None:
        self._half = max(1, size // 2)
        self._young: dict[str, int] = {}
        self._old: dict[str, int] = {}

    def __contains__(self, url: str) -> bool:
        return self.depth(url) is not None

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def depth(self, url: str) -> int | None:
        """The least depth at which the frontier is known to know a link."""
        depth = self._young.get(url)
        if depth is None and (depth := self._old.get(url)) is not None:
            self._keep(url, depth)
        return depth

    def within(self, url: str, depth: int) -> bool:
        """Return whether the frontier is known to know a link at this depth or a lesser one."""
        known = self._young.get(url)
        if known is None:
            known = self.depth(url)
        return known is not None and known <= depth

    def add(self, url: str, depth: int) -> None:
        """Remember a link; call this only when it is in the frontier."""
        known = self.depth(url)
        self._keep(url, depth if known is None else min(depth, known))

    def _keep(self, url: str, depth: int) -> None:
        if len(self._young) >= self._half:
            self._old, self._young = self._young, {}
        self._young[url] = depth


class LinkTexts:
    """A guess at the meaning of references in one document, without parsing them as URLs."""

    def __init__(self, base: str) -> None:
        self._site = site_of(base)
        self._top = self._site.removesuffix("/")
        self._scheme = self._site.partition("/")[0]
        self._folder = base[: base.partition("?")[0].rfind("/") + 1]
        above = self._folder[: self._folder.rfind("/", 0, -1) + 1]
        self._above = above if len(above) > len(self._site) else self._site

    def guess(self, reference: str) -> str:
        """A text that is what a reference without a scheme means, if it is as the URL standard writes it.

        >>> texts = LinkTexts("http://a.example/b/c/d?e")
        >>> texts.guess("f"), texts.guess("../f"), texts.guess("/f"), texts.guess("//g.example/f")
        ('http://a.example/b/c/f', 'http://a.example/b/f', 'http://a.example/f', 'http://g.example/f')
        """
        begins = reference[:1]
        if begins == "/":
            return (self._scheme if reference[1:2] == "/" else self._top) + reference
        if begins == ".":
            return self._above + reference[3:] if reference[:3] == "../" else ""
        return "" if begins in "?#" or ":" in reference else self._folder + reference


class Admission:
    """Decides which references become items. Used by one thread at a time."""

    def __init__(self, settings: Settings, seeds: Sequence[str]) -> None:
        self.settings = settings
        """Those of the crawl."""
        self._filters = filters(settings, seeds)
        self._lists = [each for each in self._filters.values() if isinstance(each, ListFilter)]
        self._patterns = next(each for each in self._filters.values() if isinstance(each, PatternFilter))
        self._max_depth = settings.crawl.depth
        self._session_names = frozenset(settings.filters.session_names)
        self.forgotten = ForgottenUrls(self._session_names)
        """What is not fetched again; whoever has a session refreshes it."""
        self._queue_key = queue_key(settings)
        self._by_address = settings.frontier.queue == "ip"
        self._with_tags = TagRules(settings.tags.rules).added if settings.tags.rules else _same_tags
        self._known = defaultdict[int, KnownLinks](partial(KnownLinks, settings.frontier.known_links))
        self.host_links = HostLinks(host_key if settings.frontier.queue == "domain" else host)

    def items(self, found: Reference) -> list[Item]:
        """The items of references that are not known to be known so near."""
        return self.admit(found)[0]

    def admit(self, found: Reference, seen: dict[str, Item] | None = None) -> tuple[list[Item], int]:
        """The same, and what kept others out: bits of `tamias.model.cut`.

        `seen` are plain links that are put together with these, and these are added to them.
        """
        if self._max_depth is not None and found.depth > self._max_depth:
            return [], self._cut_by_depth(found)
        is_plain = found.kind is None and not found.tags and found.score is None
        fresh, followed, cut = self._fresh_items(found, {} if seen is None or not is_plain else seen)
        if self._max_depth is not None and (fresh or followed):
            cut |= BELOW
        return fresh, cut

    def _fresh_items(self, found: Reference, seen: dict[str, Item]) -> tuple[list[Item], bool, int]:
        """Return the items to put, whether known URLs are named too, and what kept others out."""
        fresh: dict[str, Item] = {}
        known, followed, cut = self._known[found.crawl], False, 0
        base, depth, kind = found.base, found.depth, found.kind
        texts, here = None, site_of(base)
        away: list[str] = []
        for reference in found.references:
            # What is known stands there as the URL standard writes it: text that is equal is that URL.
            url = reference
            if kind is not None:
                url = ""
            elif url[:4] != "http":
                texts = texts or LinkTexts(base)
                url = texts.guess(reference)
            near = known.within(url, depth)
            item = None
            if not near and (item := seen.get(url)) is None:
                url, near = self._locate(reference, found, known)
                if not url:
                    continue
            if not url.startswith(here):
                away.append(url)
            if item is not None and (item.depth, item.crawl) == (depth, found.crawl):
                fresh[url] = item
                continue
            if near or url in fresh:
                followed |= near
                continue
            refused_by = self.refused_by(url, depth, scoped=found.crawl != WATCH)
            if refused_by is None:
                item = self.item(url, depth, found.crawl, kind, tags=found.tags, score=found.score)
                seen[url] = fresh[url] = item
            else:
                cut |= refused_by[1]
        if away:
            self.host_links.count(here, away)
        return list(fresh.values()), followed, cut

    def _locate(self, reference: str, found: Reference, known: KnownLinks) -> tuple[str, bool]:
        """Return the URL of a reference, empty where it is none, and whether it is known so near."""
        depth, kind = found.depth, found.kind
        try:
            url = resolve(reference, found.base)
        except UrlError:
            return "", False
        near = known.within(url if kind is None else kind_key(url, kind), depth)
        # Most links are known as they stand: only the others are searched for session parameters.
        if not near and (plain := without_session(url, self._session_names)) != url:
            url, near = plain, known.within(kind_key(plain, kind), depth)
        return url, near

    def _cut_by_depth(self, found: Reference) -> int:
        """Return the cut of the depth limit, if a link would be followed from nearer to a seed."""
        cut, itself = 0, resolved("", found.base)
        for reference in found.references:
            url = resolved(reference, found.base)
            if url is None or url == itself:
                continue
            refused_by = self.refused_by(url, 0)
            if refused_by is None:
                return DEPTH
            cut |= refused_by[1]
        return cut

    def item(
        self,
        url: str,
        depth: int,
        crawl: int,
        kind: str | None = None,
        *,
        tags: tuple[str, ...] = (),
        score: float | None = None,
    ) -> Item:
        """The item of a URL, whatever the filters say; the deeper, the lower its score, unless given."""
        key = url_key(url, self._session_names)
        return Item(
            url=url,
            key=kind_key(key, kind),
            host=self.queue(url),
            crawl=crawl,
            depth=min(depth, MOST_DEPTH),
            score=usual_score(depth) if score is None else score,
            tags=self._with_tags(url, tags if kind is None else (*tags, kind_tag(kind))),
        )

    def key(self, url: str) -> str:
        """The key that tells whether a URL is known."""
        return url_key(url, self._session_names)

    def queue(self, url: str) -> str:
        """The key of the queue that a URL belongs to; the name of an excluded host is not even looked up."""
        if self._by_address and self.blocked(url, ROBOTS) is not None:
            return host(url)
        return self._queue_key(url)

    def refusal(self, url: str, depth: int) -> str | None:
        """Return why a URL may not enter, if so."""
        refused_by = self.refused_by(url, depth)
        return None if refused_by is None else refused_by[0]

    def watch_refusal(self, url: str) -> str | None:
        """Return why a URL may not be watched; the scope of the crawl does not apply."""
        refused_by = self.refused_by(url, 0, scoped=False)
        return None if refused_by is None else refused_by[0]

    def refused_by(self, url: str, depth: int, *, scoped: bool = True) -> tuple[str, int] | None:
        """Return why a URL may not enter, with bits of `tamias.model.cut`; the scope applies if `scoped`."""
        if reason := self.forgotten.refuse(url):
            return reason, FILTER
        for name, each in self._filters.items():
            if (scoped or name != "scope") and (reason := each.refuse(url, depth)):
                return reason, self._bit(name, url, depth)
        return None

    def _bit(self, name: str, url: str, depth: int) -> int:
        """Return what nobody could fetch anyway, such as `mailto:`, was not cut."""
        if self._max_depth is not None and depth > self._max_depth:
            return DEPTH
        if name == "scheme" and url.partition(":")[0] not in DEFAULT_SCHEMES:
            return 0
        return SCOPE if name == "scope" else FILTER

    def blocked(self, url: str, kind: str | None = None) -> str | None:
        """The block list or `exclude` that names a URL, or that it is forgotten: asked before each request.

        Both may have changed since the URL became known, and what is put first passes no other filter. A file
        that speaks for a host, as robots.txt does, is only kept out together with its host.
        """
        reason = self.forgotten.refuse(url)
        for each in self._lists:
            reason = reason or each.refuse(url, 0)
        if reason is not None or kind != ROBOTS:
            return reason or self._patterns.excluded(url)
        place = authority(url)
        return self._patterns.excluded(f"{place}/robots.txt") and self._patterns.excluded(place + _ANY_PATH)

    def blocked_counts(self) -> dict[str, int]:
        """Return how often each block list kept something out since the last call."""
        return {name: count for each in self._lists for name, count in each.taken_counts().items()}

    def is_known(self, url: str, crawl: int) -> bool:
        """Return whether the frontier is known to know an ordinary address."""
        return url in self._known[crawl]

    def remember(self, items: Iterable[Item]) -> None:
        """Remember that these items are in the frontier."""
        for item in items:
            self._known[item.crawl].add(kind_key(item.url, kind_of(item.tags)), item.depth)


def _same_tags(_url: str, tags: tuple[str, ...]) -> tuple[str, ...]:
    return tags


def usual_score(depth: int) -> float:
    """The deeper, the lower."""
    return float(SCORE_HALVED_BY_DEPTH ** min(depth, 10))


def first(admission: Admission, url: str, kind: str, task: Task, tags: tuple[str, ...] = ()) -> Item:
    """An item that is visited before all others of its host, whatever the filters say of it."""
    item = admission.item(url, task.depth, task.crawl, kind, tags=tags, score=FIRST)
    return msgspec.structs.replace(item, due=LONG_DUE)


def filters(settings: Settings, seeds: Sequence[str]) -> dict[str, Filter]:
    """Return the filters in force by name: those of the core, cheapest first, then those of features.

    Raises `ConfigError` where block lists are named and nothing reads them.
    """
    wanted = settings.filters
    build: dict[str, Callable[[type], Filter]] = {
        "scheme": lambda part: part(frozenset(wanted.schemes)),
        "trap": lambda part: part(
            max_length=wanted.max_length,
            max_segments=wanted.max_segments,
            max_repeats=wanted.max_repeats,
            max_depth=settings.crawl.depth,
            max_query_pairs=wanted.max_query_pairs,
        ),
        "scope": lambda part: part(wanted.scope, list(seeds)),
        "pattern": lambda part: part(wanted.include, wanted.exclude),
    }
    if wanted.blocklists:
        load("filters", "blocklist")
    installed = load_all("filters")
    own = {name: make(installed.pop(name)) for name, make in build.items()}
    added = {name: part(wanted) for name, part in installed.items()}
    return own | {name: each for name, each in added.items() if each is not None}


def queue_key(settings: Settings) -> Callable[[str], str]:
    """Return what gives the key of a URL's queue: a pay-level domain, a host name, or an address."""
    if settings.frontier.queue == "ip":
        return address_of(settings)
    return host_key if settings.frontier.queue == "domain" else host


def same_url(session_names: frozenset[str]) -> Callable[[str, str], bool]:
    """Return whether two texts to fetch are one URL."""
    return lambda one, other: url_key(one, session_names) == url_key(other, session_names)


def open_frontier(
    session: "Session",
    settings: Settings,
    worker: int | None = None,
    lease_filter: "LeaseFilter | None" = None,
) -> "PostgresFrontier":
    """The frontier as the settings have it, for one thread; its leases are in the name of the worker."""
    from tamias.frontier.postgres import PostgresFrontier

    return PostgresFrontier(
        session,
        same_url=same_url(frozenset(settings.filters.session_names)),
        worker=worker,
        delay_ms=host_delay_ms(settings.fetch.delay, None, obey_robots=False),
        lease_filter=lease_filter,
    )


def resolved(reference: str, base: str) -> str | None:
    """The address that a reference in a document stands for; None when it is none."""
    try:
        return resolve(reference, base)
    except UrlError:
        return None


def seed_items(settings: Settings, seeds: Sequence[Seed], crawl: int) -> list[Item]:
    """Return the seeds as items. Raise `UrlError` for one that is not a URL."""
    admission = Admission(settings, [seed.address for seed in seeds])
    return [admission.item(fetch_url(seed.address), 0, crawl, seed.kind, tags=seed.tags) for seed in seeds]
