"""Reopens visited URLs by what a later run allows and an earlier one did not."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from tamias.crawl.plan.policy import Options, read_policy, write_policy
from tamias.database.connect import Session
from tamias.frontier.due import ReopenFilter, count_cut, count_visited, reopen, reopen_visited
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.cut import DEPTH, FILTER, LISTED, PRIVATE, ROBOTS, SCOPE, TRAP

_WIDTH = ("prefix", "host", "domain", "any")
_TRAPS = ("permit.host_visits", "permit.host_budget", "permit.monotony")
_LISTS = ("seeds.host_sitemaps", "seeds.host_sitemap_urls")
_URL_LIMITS = ("max_length", "max_segments", "max_repeats", "max_query_pairs")
_DOCUMENT_LIMITS = ("fetch", "open", "analyse", "sandbox")
"""Tables of settings whose limits are named in the reason of a visit that met one."""
_NO_LIMITS = frozenset({"delay", "concurrency", "processes", "documents", "min_rate", "min_rate_window"})

_HTML = r"^(text/html|application/xhtml\+xml)$"


class Widening(msgspec.Struct, frozen=True):
    """An option that allows more than before, and what it had kept out."""

    word: str
    """What users call it."""
    cut: int = 0
    """Bits of `tamias.model.cut`; if 0, it is the reason of the visit that tells."""
    reason: str = ""
    """What the reason of a visit contains that met this limit."""
    media_type: str = ""
    """A regular expression for the media types of documents that are read in another way now."""


def widenings(before: Options, after: Options) -> list[Widening]:
    """Return what `after` allows and `before` did not. What `before` does not name is taken to be the same.

    >>> widenings({"crawl.depth": 1, "permit.robots": True}, {"crawl.depth": 2, "permit.robots": True})
    [Widening(word='depth', cut=1, reason='', media_type='')]
    """
    old = {**after, **before}
    found = [
        (DEPTH, "depth", _exceeds(old["crawl.depth"], after["crawl.depth"])),
        (SCOPE, "scope", _wider(old.get("filters.scope"), after.get("filters.scope"))),
        (FILTER, "filters", _filters_open(old, after)),
        (PRIVATE, "private addresses", _turned(old, after, "permit.allow_private", on=True)),
        (ROBOTS, "robots.txt", _turned(old, after, "permit.robots", on=False)),
        (TRAP, "traps", any(_exceeds(old.get(name) or None, after.get(name) or None) for name in _TRAPS)),
        (LISTED, "sitemaps", any(_exceeds(old.get(name, 0), after.get(name, 0)) for name in _LISTS)),
    ]
    opened = [Widening(word, cut) for cut, word, is_wider in found if is_wider]
    if _turned(old, after, "crawl.requisites", on=True):
        opened.append(Widening("requisites", media_type=_HTML))
    limits = (name for name in after if _is_limit(name, after[name]))
    return opened + [Widening(name, reason=_in_reasons(name)) for name in limits if after[name] > old[name]]


def _is_limit(name: str, value: Any) -> bool:
    """Return whether a setting limits documents."""
    table, _, short = name.partition(".")
    return table in _DOCUMENT_LIMITS and type(value) in (int, float) and short not in _NO_LIMITS


def _in_reasons(name: str) -> str:
    """Return how the reason of a visit names a limit."""
    table, _, short = name.partition(".")
    if table != "fetch":
        return f"limit {name}"
    return "(timeout)" if short == "timeout" else short


def _exceeds(old: float | None, new: float | None) -> bool:
    """Return whether a limit is higher now, or gone."""
    return old is not None and (new is None or new > old)


def _wider(old: Any, new: Any) -> bool:
    return old in _WIDTH and new in _WIDTH and _WIDTH.index(new) > _WIDTH.index(old)


def _turned(old: Options, new: Options, name: str, *, on: bool) -> bool:
    return old.get(name) is not on and new.get(name) is on


def _filters_open(old: Options, new: Options) -> bool:
    """Tell if the new filters may admit more; a changed expression counts as wider."""
    include, exclude = ("filters.include", "filters.exclude")

    def lost(name: str, before: Options, after: Options) -> set[Any]:
        return set(before.get(name) or ()) - set(after.get(name) or ())

    return (
        bool(old.get(include) and (not new.get(include) or lost(include, new, old)))
        or bool(lost(exclude, old, new))
        or bool(lost("filters.blocklists", old, new))
        or bool(lost("filters.schemes", new, old))
        or any(_exceeds(old.get(f"filters.{name}", 0), new.get(f"filters.{name}", 0)) for name in _URL_LIMITS)
    )


class Reopened(msgspec.Struct, frozen=True):
    """Number of URLs that an option opened."""

    option: str
    urls: int

    def __str__(self) -> str:
        return f"{'1 URL' if self.urls == 1 else f'{self.urls:,} URLs'}: {self.option}"


def reopen_widened(session: Session, frontier: PostgresFrontier, crawl: int) -> list[Reopened]:
    """Make due what the crawl now allows and did not allow before. May be repeated."""
    policy = read_policy(session, crawl)
    opened = _each(
        widenings(policy.before, policy.options),
        lambda each: (
            reopen(session, frontier, crawl, each.cut)
            if each.cut
            else reopen_visited(session, frontier, crawl, _visits(each))
        ),
    )
    if policy.before:
        write_policy(session, msgspec.structs.replace(policy, before={}), crawl)
    return opened


def count_widened(
    session: Session, buckets: int, crawl: int, before: Options, after: Options
) -> list[Reopened]:
    """Return what `reopen_widened` would open; a URL that two options open is counted for both."""
    return _each(
        widenings(before, after),
        lambda each: (
            count_cut(session, buckets, crawl, each.cut)[1]
            if each.cut
            else count_visited(session, buckets, crawl, _visits(each))
        ),
    )


def _visits(opened: Widening) -> ReopenFilter:
    return ReopenFilter(reason=opened.reason or None, media_type=opened.media_type or None)


def _each(found: Sequence[Widening], count: Callable[[Widening], int]) -> list[Reopened]:
    opened = (Reopened(each.word, count(each)) for each in found)
    return [each for each in opened if each.urls]
