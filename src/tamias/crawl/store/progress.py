"""How far a worker has come: counted by whoever commits, and told to the supervisor.

Apart from the worker, so that a supervisor need not load all that a worker consists of.
"""

import msgspec

from tamias.crawl.store.reasons import ReasonCounts
from tamias.model.capture import Outcome
from tamias.model.url import without_password

_UNFETCHED = frozenset({Outcome.REFUSED, Outcome.FAILED, Outcome.SKIPPED})

Shares = dict[str, tuple[int, int]]
"""By sitemap: resources that its dumps describe, and all that a crawl met of those they should."""


def count_share(shares: Shares, sitemap: str, *, described: bool) -> None:
    """Count a resource that a dump should describe."""
    known, all_of_them = shares.get(sitemap, (0, 0))
    shares[sitemap] = known + described, all_of_them + 1


class Tally(msgspec.Struct):
    """What was committed so far."""

    visited: int = 0
    """URLs that are done with."""
    put_off: int = 0
    """Attempts that will be repeated."""
    again: int = 0
    """Visits of URLs that were visited before, since a shorter way to them was found."""
    revisited: int = 0
    """URLs that were visited before, in a crawl that goes on."""
    quads: int = 0
    bytes: int = 0
    outcomes: dict[str, int] = msgspec.field(default_factory=dict)
    reasons: ReasonCounts = msgspec.field(default_factory=ReasonCounts)
    """Of refusals, failures and skips."""
    shares: Shares = msgspec.field(default_factory=dict)
    unread: dict[str, int] = msgspec.field(default_factory=dict)
    """Documents that no part reads, by type."""

    def count_outcome(self, outcome: Outcome, reason: str, url: str) -> None:
        """One more URL is done with."""
        self.visited += 1
        self.outcomes[outcome.word] = self.outcomes.get(outcome.word, 0) + 1
        if outcome in _UNFETCHED:
            self.reasons.add(outcome.word, reason, without_password(url))


class Progress(msgspec.Struct, kw_only=True):
    """What a worker has done so far."""

    worker: int = 0
    tally: Tally = msgspec.field(default_factory=Tally)
    in_flight: int = 0
    paused: str | None = None
    """Why it waits: there is no network, or the store of bodies is away."""
    error: str | None = None
    retry_can_help: bool = False
    """Whether the error is of a kind that passes."""
    exit_code: int = 0
