"""Opens again what a later run allows and an earlier one did not, and tells how much that is."""

from collections.abc import Callable, Sequence

import msgspec

from tamias.crawl.plan.policy import Options, read_policy, write_policy
from tamias.crawl.plan.widening import Widening, widenings
from tamias.database.connect import Session
from tamias.frontier.due.reopen import ReopenFilter, count_cut, count_visited, reopen, reopen_visited
from tamias.frontier.postgres import PostgresFrontier


class Reopened(msgspec.Struct, frozen=True):
    """How many URLs an option opened."""

    option: str
    urls: int

    def __str__(self) -> str:
        return f"{'1 URL' if self.urls == 1 else f'{self.urls:,} URLs'}: {self.option}"


def reopen_widened(session: Session, frontier: PostgresFrontier, crawl: int) -> list[Reopened]:
    """Makes due what the crawl now allows and did not allow before. May be repeated."""
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
    """What `reopen_widened` would open; a URL that two options open is counted for both."""
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
