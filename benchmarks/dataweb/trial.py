"""One crawler let loose on one web: served, measured, judged."""

import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from pyoxigraph import BlankNode, RdfFormat, Triple, parse

from benchmarks.dataweb.crawlers.rivals import CrawlTask, Rival
from benchmarks.dataweb.serving import serving
from benchmarks.dataweb.web import OrcaWeb
from benchmarks.measuring.measure import fault_of, measure
from benchmarks.measuring.reaper import MeasuredRun
from benchmarks.measuring.targets import Skipped, shown_command

ANY_NODE = BlankNode("any")
SUFFIXES = {".nq": RdfFormat.N_QUADS, ".nt": RdfFormat.N_TRIPLES, ".ttl": RdfFormat.TURTLE}
_TIME = re.compile(r'"[^"]*"\^\^<http://www.w3.org/2001/XMLSchema#time>')


class RecallScore(msgspec.Struct, frozen=True):
    """How much of the truth was found, and how much of what was found is true."""

    expected: int
    found: int
    """Of the expected."""
    macro_recall: float
    by_kind: dict[str, tuple[int, int]]
    """Found and expected."""
    claimed: int
    """All different statements the crawler has about nodes whose truth is known whole."""
    true: int
    """Those of them that the web says."""
    lost: list[str] = []
    """The first statements that were not found."""

    @property
    def recall(self) -> float:
        return self.found / self.expected if self.expected else 1.0

    @property
    def precision(self) -> float | None:
        return self.true / self.claimed if self.claimed else None


def score(web: OrcaWeb, found: set[str]) -> RecallScore:
    """Judges the statements of a crawler, as `keys` gives them."""
    by_kind: dict[str, tuple[int, int]] = {}
    shares: list[float] = []
    loose = loosened(web, found)
    lost: list[str] = []
    whole: set[str] = set()
    for address, built in web.nodes.items():
        expected = list(keys(b"".join(built.truth), RdfFormat.N_TRIPLES))
        whole.update(expected, keys(b"".join(built.also), RdfFormat.N_TRIPLES))
        missed = [key for key in expected if key not in found and key not in loose]
        lost += missed[:20]
        had = len(expected) - len(missed)
        if expected:
            shares.append(had / len(expected))
        kind = web.kind_of(address)
        earlier = by_kind.get(kind, (0, 0))
        by_kind[kind] = (earlier[0] + had, earlier[1] + len(expected))
    claimed = {key for key in found if closed(web, key)}
    return RecallScore(
        expected=sum(pair[1] for pair in by_kind.values()),
        found=sum(pair[0] for pair in by_kind.values()),
        macro_recall=sum(shares) / len(shares) if shares else 1.0,
        by_kind=by_kind,
        claimed=len(claimed),
        true=len(claimed & whole),
        lost=lost[:60],
    )


def loosened(web: OrcaWeb, found: set[str]) -> set[str]:
    """The found statements with any term in place of subject or object, where the truth leaves these open."""
    lines = [line for built in web.nodes.values() for line in built.truth if b"_:" in line]
    predicates = {f"<{quad.predicate.value}>" for quad in parse(b"".join(lines), format=RdfFormat.N_TRIPLES)}
    loose: set[str] = set()
    for key in found:
        subject, predicate, value = key.split(" ", 2)
        if predicate in predicates:
            loose |= {
                f"_:any {predicate} {value}",
                f"{subject} {predicate} _:any",
                f"_:any {predicate} _:any",
            }
    return loose


def closed(web: OrcaWeb, key: str) -> bool:
    """Whether all that is to be said about the subject is known."""
    host = key[8 : key.find("/", 8)].partition(":")[0] if key.startswith("<http://") else ""
    built = web.nodes.get(host)
    return built is not None and built.closed


def keys(text: bytes | Any, form: RdfFormat) -> Iterator[str]:
    """Statements as strings, equal when the statements are; graphs and labels of blank nodes left out."""
    for quad in parse(text, format=form, lenient=True):
        subject = ANY_NODE if isinstance(quad.subject, BlankNode) else quad.subject
        value = ANY_NODE if isinstance(quad.object, BlankNode) else quad.object
        yield _TIME.sub("_:any", str(Triple(subject, quad.predicate, value)))


ROBOTS = "/robots.txt"


class LoggedRequest(msgspec.Struct, frozen=True):
    """One request."""

    seconds: float
    address: str
    status: str
    target: str


class Manners(msgspec.Struct, frozen=True):
    """How the rules of robots.txt were kept."""

    disallowed: int
    """Forbidden resources of the whole web."""
    disallowed_requested: int
    """Those of them that were asked for all the same."""
    fulfilment: tuple[float, float, float] | None = None
    """Mean gap between requests over the delay asked for: mean over nodes, least, most."""


class RequestAccount(msgspec.Struct, frozen=True):
    """A crawl as the servers saw it."""

    requests: int
    resources: int
    """Different documents given out of those that a complete crawl fetches."""
    robots: int
    missing: int
    handed_out: int
    """Triples of those documents."""
    manners: Manners


def read_visits(logs: Iterable[Path], since: float = 0.0) -> list[LoggedRequest]:
    """All requests in their order."""
    visits = [visit for log in logs for visit in _lines(log)]
    return sorted((visit for visit in visits if visit.seconds >= since), key=lambda visit: visit.seconds)


def _lines(log: Path) -> Iterator[LoggedRequest]:
    with log.open(encoding="utf-8") as lines:
        for line in lines:
            seconds, address, status, target = line.rstrip("\n").split(" ", 3)
            yield LoggedRequest(float(seconds), address, status, target)


def account(web: OrcaWeb, visits: Sequence[LoggedRequest]) -> RequestAccount:
    """The crawl in figures."""
    weights = {address: built.weights for address, built in web.nodes.items()}
    seen: set[tuple[str, str]] = set()
    for visit in visits:
        place = weighed(weights.get(visit.address, {}), visit.target)
        if visit.status == "200" and place and (visit.address, place) not in seen:
            seen.add((visit.address, place))
    statuses = Counter(visit.status for visit in visits if visit.target != ROBOTS)
    return RequestAccount(
        requests=len(visits),
        resources=len(seen),
        robots=sum(visit.target == ROBOTS for visit in visits),
        missing=statuses["404"],
        handed_out=sum(weights[address][place] for address, place in seen),
        manners=manners(web, visits),
    )


def weighed(weights: Mapping[str, int], target: str) -> str | None:
    """The document that a request is for: with its query if it has one of its own, otherwise without."""
    if target in weights:
        return target
    path = target.partition("?")[0]
    return path if path in weights and "page=" not in target else None


def manners(web: OrcaWeb, visits: Sequence[LoggedRequest]) -> Manners:
    """Forbidden resources asked for, and the gaps between requests to one node."""
    forbidden = {(a, path) for a, built in web.nodes.items() for path in built.disallowed}
    asked = {(visit.address, visit.target) for visit in visits} & forbidden
    delay = web.plan.wish.delay
    return Manners(len(forbidden), len(asked), fulfilment(visits, delay) if delay else None)


def fulfilment(visits: Sequence[LoggedRequest], delay: float) -> tuple[float, float, float] | None:
    """1 is exactly the delay asked for, less is impolite. Requests for robots.txt are not counted."""
    times: dict[str, list[float]] = defaultdict(list)
    for visit in visits:
        if visit.target != ROBOTS:
            times[visit.address].append(visit.seconds)
    means = [(at[-1] - at[0]) / (len(at) - 1) / delay for at in times.values() if len(at) > 1]
    return (sum(means) / len(means), min(means), max(means)) if means else None


SCOPE = r"^(https?|ftp)://127\.[2-9]\."
Out = Callable[[str], object]


class TrialOutcome(msgspec.Struct, frozen=True):
    """What one crawler made of one web."""

    name: str
    version: str
    terms: str
    command: str
    measured: MeasuredRun
    account: RequestAccount
    score: RecallScore | None
    """None for a crawler that keeps no statements."""
    server_cpu_seconds: float
    fault: str = ""

    @property
    def resources_per_cpu_second(self) -> float:
        return self.account.resources / self.measured.cpu_seconds if self.measured.cpu_seconds else 0.0

    @property
    def is_whole(self) -> bool:
        """Whether it found nearly everything, so that its pace counts."""
        return self.score is not None and self.score.recall > 0.9


def attempt(web: OrcaWeb, rival: Rival, task: CrawlTask, seconds: float) -> TrialOutcome | Skipped:
    """Serves the web for this crawler alone, lets it crawl, and judges what it has."""
    task.folder.mkdir(parents=True)
    task.seed_file.write_text("\n".join(task.seeds) + "\n", encoding="utf-8")
    contender = rival.prepare(task)
    if isinstance(contender, Skipped):
        return contender
    with serving(web.pages_at, web.port, task.folder / "servers") as servers:
        started, used = time.monotonic(), servers.cpu_seconds()
        measured = measure(contender.command, task.folder, seconds=seconds, environment=contender.environment)
        used = servers.cpu_seconds() - used
    visits = read_visits(servers.logs, started)
    files = rival.harvest(task)
    found: set[str] = set()
    for file in files:
        with file.open("rb") as text:
            found.update(keys(text, SUFFIXES[file.suffix]))
    return TrialOutcome(
        name=contender.name,
        version=contender.version,
        terms=contender.terms,
        command=shown_command(contender.command),
        measured=measured,
        account=account(web, visits),
        score=score(web, found) if files else None,
        server_cpu_seconds=used,
        fault=fault_of(measured, task.folder),
    )
