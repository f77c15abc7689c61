"""The progress of a worker, counted at its commits and reported to the supervisor, and its CPU time by steps.

Apart from the worker, so that a supervisor need not load all that a worker consists of.
"""

import os
import re
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from pathlib import Path

import msgspec

from tamias.model.capture import Outcome
from tamias.model.url import without_password

MOST_KINDS = 100
"""Kinds of reasons that are counted apart; what comes later is counted as others."""
OTHER = "other reasons"


class ReasonCount(msgspec.Struct):
    """URLs whose visits ended for the same kind of reason."""

    outcome: str
    kind: str
    advice: str
    """What to do about it; empty where nothing can be done."""
    count: int
    example: str
    """One of the URLs."""
    reason: str
    """Why that one, in full."""


class ReasonCounts(msgspec.Struct):
    """Counts reasons, in bounded memory."""

    counts: dict[str, ReasonCount] = msgspec.field(default_factory=dict)
    """By outcome and kind."""

    def add(self, outcome: str, reason: str, url: str, count: int = 1) -> None:
        """Count URLs with the same reason, and name one of them."""
        kind, advice = kind_of_reason(reason)
        if f"{outcome} {kind}" not in self.counts and len(self.counts) >= MOST_KINDS:
            kind, advice = OTHER, ""
        self._add(ReasonCount(outcome, kind, advice, count, url, reason))

    def merge(self, others: "ReasonCounts") -> None:
        """Add all counts of another object."""
        for each in others.counts.values():
            self._add(each)

    def top(self, most: int | None = None) -> list[ReasonCount]:
        """The most frequent first."""
        return sorted(self.counts.values(), key=lambda each: (-each.count, each.outcome, each.kind))[:most]

    def _add(self, more: ReasonCount) -> None:
        known = self.counts.get(f"{more.outcome} {more.kind}")
        if known is None:
            self.counts[f"{more.outcome} {more.kind}"] = msgspec.structs.replace(more)
        else:
            known.count += more.count


_ADVICE = (
    (r"(\w[\w' -]*) address [0-9a-f]*[.:][0-9a-f.:]*", r"\1 address", "use --allow-private"),
    (r"\(limit ([a-z_]+\.[a-z_]+)[),]", r"limit \1", r"raise \1 in tamias.toml"),
    (
        r"(?:^|\brefused by )robots\.txt: (?:line|the rule)\b",
        "robots.txt",
        "use --no-robots if the site's owner agrees",
    ),
    (
        r"^wall: (.*) challenge",
        r"wall: \1",
        "ask the site's owner to let your User-Agent pass; nothing was stored as a version",
    ),
    (r"\bforgotten on (\S+?):", r"forgotten on \1", "tamias forget --lift lets a URL be fetched again"),
    (r"\bpattern: exclude '(.*)' matches", r"--exclude '\1'", "run again without that --exclude"),
    (r"\bpattern: no include matches", "no --include matches", "run again with a wider --include"),
    (r"\bscope (\w+):", r"scope \1", "use a wider --scope"),
    (r"\bblock ?list\b", "on a block list", "see filters.blocklists in tamias.toml"),
    (r"\btrap: .* max_depth \d+", "deeper than --depth", "use a larger --depth"),
    (r"\btrap: .* (max_\w+) \d+", r"limit filters.\1", r"raise filters.\1 in tamias.toml"),
    (r"\bno fetcher for (\w+)", r"no fetcher for \1 addresses", ""),
    (r"\bconnection refused by", "connection refused", "check the port, and whether the server runs"),
    (r"\bname does not resolve", "name does not resolve", "check the spelling of the host"),
    (r"\bTLS certificate\b.*? refused", "TLS certificate refused", ""),
    (
        r"^no known portal software",
        "no known portal software",
        "name its kind, such as dcat:URL or oai-pmh:URL",
    ),
    (r"(?:^|: )(4(?:01|03|07) [A-Z]\w+)", r"\1", "the server wants a login or does not want crawlers"),
    (r"(?:^|: )(429 [A-Z]\w+(?: \w+)*)", r"\1", "use a longer --delay"),
    (r"(?:^|: )((?:404|410) [A-Z]\w+(?: [A-Z]\w+)*)", r"\1", "correct the link or the seed"),
    (
        r"(?:^|: )(5\d\d [A-Z][\w-]+(?: [A-Z][\w-]+)*)",
        r"\1",
        "once the server works again, run tamias crawls reopen --outcome failed",
    ),
    (r"(?:^|: )([1-5]\d\d [A-Z][\w-]+(?: [A-Z][\w-]+)*)", r"\1", ""),
)
_PATTERNS = tuple((re.compile(pattern), kind, advice) for pattern, kind, advice in _ADVICE)
_DETAILS = re.compile(
    r"\b\w+://\S+|'[^']*'|\"[^\"]*\"|\b[\w-]+(?:\.[\w-]+)+(?::\d+)?|\[[0-9a-f:.]+\]|\d[\d.,:]*"
)
_SINCE = re.compile(r"\bunreachable since [\d: -]+ UTC \(\d+ tr(?:y|ies)\): ")
_LONGEST_KIND = 80
_LONGEST_REASON = 1000
"""Characters that are looked at: servers write parts of it, and some patterns go back over what they read."""


def kind_of_reason(reason: str) -> tuple[str, str]:
    """Return the kind of a reason, and advice about it.

    >>> kind_of_reason("robots.txt: line 2: Disallow: /shut")
    ('robots.txt', "use --no-robots if the site's owner agrees")
    >>> kind_of_reason("robots.txt: loopback address 127.0.0.1")
    ('loopback address', 'use --allow-private')
    >>> kind_of_reason("forgotten on 2026-11-17: the owner asked for it")[0]
    'forgotten on 2026-11-17'
    >>> kind_of_reason("redirects to http://a.test/: not a public address fe00::1")
    ('not a public address', 'use --allow-private')
    >>> kind_of_reason("trap: more than 9 visits to a.test (limit permit.host_visits)")
    ('limit permit.host_visits', 'raise permit.host_visits in tamias.toml')
    >>> kind_of_reason("503 Service Unavailable")[0], kind_of_reason("403 Forbidden")[0]
    ('503 Service Unavailable', '403 Forbidden')
    >>> kind_of_reason("connection to 10.2.3.4:80 failed: curl error 56")[0]
    'connection to … failed: curl error …'
    >>> kind_of_reason("no known portal software at http://a.test/; tried: http://a.test/ (404 Not Found)")[0]
    'no known portal software'
    >>> kind_of_reason("unreachable since 2026-11-16 23:49:30 UTC (4 tries): connection refused by ::1")
    ('connection refused', 'check the port, and whether the server runs')
    """
    reason = _SINCE.sub("", reason[:_LONGEST_REASON])
    for pattern, kind, advice in _PATTERNS:
        if found := pattern.search(reason):
            return found.expand(kind), found.expand(advice)
    common = _DETAILS.sub("…", reason)
    return (common if len(common) <= _LONGEST_KIND else f"{common[: _LONGEST_KIND - 1]}…"), ""


_UNFETCHED = frozenset({Outcome.REFUSED, Outcome.FAILED, Outcome.SKIPPED})

Shares = dict[str, tuple[int, int]]
"""By sitemap: resources that its dumps describe, and all that a crawl met of those they should."""


def count_share(shares: Shares, sitemap: str, *, described: bool) -> None:
    """Count a resource that a dump should describe."""
    known, all_of_them = shares.get(sitemap, (0, 0))
    shares[sitemap] = known + described, all_of_them + 1


class Tally(msgspec.Struct):
    """The totals of what was committed."""

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
        """Count a URL that is done."""
        self.visited += 1
        self.outcomes[outcome.word] = self.outcomes.get(outcome.word, 0) + 1
        if outcome in _UNFETCHED:
            self.reasons.add(outcome.word, reason, without_password(url))


class Progress(msgspec.Struct, kw_only=True):
    """The work that a worker has done."""

    worker: int = 0
    tally: Tally = msgspec.field(default_factory=Tally)
    in_flight: int = 0
    paused: str | None = None
    """Why it waits: there is no network, or the store of bodies is away."""
    error: str | None = None
    retry_can_help: bool = False
    """Whether the error is of a kind that passes."""
    exit_code: int = 0


class Ended(StrEnum):
    """The reason why a crawl ended."""

    DONE = "done"
    LIMIT = "limit"
    WAITING = "waiting"
    PAUSED = "paused"
    INTERRUPTED = "interrupted"


class CrawlSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a crawl at one moment."""

    seconds: float = 0.0
    visited: int
    """URLs done with in this run."""
    put_off: int
    """Attempts that are repeated later."""
    again: int
    """Visits of URLs that were visited before, since a shorter way to them was found."""
    revisited: int
    """Of those visited: URLs that a crawl that goes on had visited before."""
    outcomes: dict[str, int]
    reasons: list[ReasonCount] = []
    """Of refusals, failures and skips in this run, the most frequent first."""
    shares: Shares = {}
    unread: dict[str, int] = {}
    """Documents of this run that no part reads, by type, the most frequent first."""
    quads: int
    bytes: int
    in_flight: int
    known: int = 0
    open: int = 0
    hosts: int = 0
    workers: int
    ended: Ended | None = None
    next_in: float | None = None
    """Seconds until the next host can be asked, when the crawl ended before that or waits for it."""
    paused: str | None = None
    """Why workers wait: there is no room on the disk, or no network."""
    trapped: tuple[int, int] = (0, 0)
    """Queues that were stopped as traps when the crawl ended, and known URLs there that were not visited."""
    deferred: tuple[str, ...] = ()
    """Hosts that could not be reached, with the reason, when the crawl ended before they were tried again or
    waits for nothing else."""


def snapshot(progress: Sequence[Progress], working: Sequence[Progress]) -> CrawlSnapshot:
    """Add up what workers have done, those that are still at work among them."""
    tallies = [each.tally for each in progress]
    unread, reasons, shares = Counter[str](), ReasonCounts(), Shares()
    for each in tallies:
        unread.update(each.unread)
        reasons.merge(each.reasons)
        for sitemap, (known, met) in each.shares.items():
            before = shares.get(sitemap, (0, 0))
            shares[sitemap] = before[0] + known, before[1] + met
    return CrawlSnapshot(
        visited=sum(each.visited for each in tallies),
        put_off=sum(each.put_off for each in tallies),
        again=sum(each.again for each in tallies),
        revisited=sum(each.revisited for each in tallies),
        outcomes=dict(sum((Counter(each.outcomes) for each in tallies), Counter[str]())),
        unread=dict(unread.most_common()),
        reasons=reasons.top(),
        shares=shares,
        quads=sum(each.quads for each in tallies),
        bytes=sum(each.bytes for each in tallies),
        in_flight=sum(each.in_flight for each in working),
        workers=len(working),
        paused=next((each.paused for each in working if each.paused), None),
    )


_FILE = os.environ.get("TAMIAS_PROFILE")
_SECONDS: dict[str, float] = {}
"""Of this process, of whatever thread."""
_NOT_COUNTED = nullcontext()


def step(name: str) -> AbstractContextManager[None]:
    """Counts the block's CPU time under a name."""
    return _NOT_COUNTED if _FILE is None else _CountedStep(name)


class _CountedStep:
    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        self._begun = time.thread_time()

    def __exit__(self, *_raised: object) -> None:
        _SECONDS[self._name] = _SECONDS.get(self._name, 0.0) + time.thread_time() - self._begun


def write_steps(pages: int) -> None:
    """Appends one JSON line; the rest of the process's time is that of fetching and the event loop."""
    if _FILE is None:
        return
    rest = time.process_time() - sum(_SECONDS.values())
    line = {"steps": {"fetch and loop": rest, **_SECONDS}, "pages": pages}
    with Path(_FILE).open("ab") as file:
        file.write(msgspec.json.encode(line) + b"\n")
