"""An attack: what it does, what stops it, and how to see in the records that it was stopped."""

from collections.abc import Callable, Mapping

import msgspec

from benchmarks.webs.server import WireRequest
from tamias.model.capture import CaptureRecord, Outcome
from tests.hostile.web.wire import Answer


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """What the service said to one request after the crawl."""

    status: int
    headers: dict[str, str]
    body: str


class AttackEvidence(msgspec.Struct, kw_only=True):
    """What is known after the crawl."""

    captures: dict[str, list[CaptureRecord]] = msgspec.field(default_factory=dict)
    """By URL asked for, oldest first."""
    log: list[WireRequest] = msgspec.field(default_factory=list)
    canary: list[str] = msgspec.field(default_factory=list)
    """Connections to addresses that nobody may connect to."""
    said: str = ""
    """All that the programs wrote to a terminal."""
    quads: str = ""
    """The export."""
    warc: list[tuple[str, str]] = msgspec.field(default_factory=list)
    """Type and target of every record in the WARC files."""
    strays: list[str] = msgspec.field(default_factory=list)
    """Files outside the data directory that hostile names lead to, if they are there."""
    probes: dict[str, Probe] = msgspec.field(default_factory=dict)
    """What the service said, by the name of the question."""

    def last(self, url: str) -> CaptureRecord | None:
        """The latest attempt on a URL."""
        found = self.captures.get(url)
        return found[-1] if found else None

    def of_host(self, host: str) -> list[WireRequest]:
        """The requests to a host, robots.txt left out."""
        return [each for each in self.log if each.host == host and each.path != "/robots.txt"]


Check = Callable[[AttackEvidence], str | None]
"""None when the attack was contained; otherwise what is wrong."""


class Attack(msgspec.Struct, frozen=True, kw_only=True):
    """One hostile host, or a hostile question to the service."""

    number: str
    """Of the list in docs/hostile-web.md: `H1` to `H29`."""
    name: str
    what: str
    """What it does."""
    limit: str
    """What stops it."""
    holds: Check
    pages: Mapping[str, Answer] = {}
    more: Mapping[str, Mapping[str, Answer]] = {}
    """Further hosts that it needs, with their pages."""
    seeds: tuple[str, ...] = ("/",)
    """Paths of its own, or whole addresses."""

    @property
    def host(self) -> str:
        """Where it is served."""
        return f"{self.name}.test"

    def url(self, path: str) -> str:
        """An address of its own."""
        return path if "://" in path else f"http://{self.host}{path}"

    @property
    def seed_urls(self) -> list[str]:
        """What a crawl is told of it."""
        return [self.url(path) for path in self.seeds]


def recorded(capture: CaptureRecord) -> str:
    """All that is recorded of an attempt in words."""
    return " | ".join([capture.reason, *capture.problems])


def ended(url: str, outcome: Outcome, *words: str) -> Check:
    """The last attempt on a URL ended so, and its record has one of the words."""

    def check(evidence: AttackEvidence) -> str | None:
        capture = evidence.last(url)
        if capture is None:
            return f"{url} was not visited"
        if capture.outcome is not outcome:
            return f"{url} is {capture.outcome.word}, not {outcome.word}: {recorded(capture)}"
        if words and not any(word in recorded(capture) for word in words):
            return f"{url} tells nothing of {' or '.join(words)}: {recorded(capture)}"
        return None

    return check


def failed(url: str, *words: str) -> Check:
    """The same for a failure."""
    return ended(url, Outcome.FAILED, *words)


def refused(url: str, *words: str) -> Check:
    """The same for what our own rules forbid."""
    return ended(url, Outcome.REFUSED, *words)


def read(url: str, *words: str, quads: int | None = None) -> Check:
    """The same for a success; with the number of statements where it matters."""

    def check(evidence: AttackEvidence) -> str | None:
        wrong = ended(url, Outcome.OK, *words)(evidence)
        capture = evidence.last(url)
        if wrong is None and capture is not None and quads is not None and capture.quads != quads:
            return f"{url} gave {capture.quads} statements, not {quads}: {recorded(capture)}"
        return wrong

    return check


def unvisited(url: str) -> Check:
    """Nobody has asked for it."""
    return lambda evidence: f"{url} was visited" if url in evidence.captures else None


def asked_at_most(host: str, most: int) -> Check:
    """The host got no more requests than these."""

    def check(evidence: AttackEvidence) -> str | None:
        count = len(evidence.of_host(host))
        return None if 0 < count <= most else f"{host} was asked {count} times, not 1 to {most}"

    return check


def no_canary(evidence: AttackEvidence) -> str | None:
    """Nobody connected to a forbidden address."""
    return f"connections to {sorted(set(evidence.canary))}" if evidence.canary else None


def every(*checks: Check) -> Check:
    """All of them hold; the first that does not is told."""
    return lambda evidence: next((wrong for check in checks if (wrong := check(evidence))), None)
