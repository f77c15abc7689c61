"""One crawl in the network of its own: sites served, canaries watched, processes measured."""

import asyncio
import os
import sys
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import msgspec

from benchmarks.measuring.measure import last_line, measure
from benchmarks.measuring.reaper import MeasuredRun
from benchmarks.webs.server import in_thread
from tamias.model.capture import Outcome
from tests.hostile.web import crowd
from tests.hostile.web.attack import Attack, AttackEvidence
from tests.hostile.web.attacks import ATTACKS
from tests.hostile.web.attacks.packed import Bomb
from tests.hostile.web.certificates import Authority
from tests.hostile.web.gathering import gather
from tests.hostile.web.good import good_names, good_sites, good_urls
from tests.hostile.web.namespace import CANARIES, INSIDE, NAME_SERVER, WEB, enter
from tests.hostile.web.wire import Site, VirtualHosts, addresses
from tests.networks.names import NameTable

HOSTILE, TLS = WEB + "200.1", (WEB + "201.1", WEB + "201.2", WEB + "201.3")
TLS_NAMES = ("tls.test", "tls-expired.test", "tls-other.test")
CANARY_PORTS = (80, 443, 8080, 6379, 25)
SETTINGS = {
    "CRAWL__RETRIES": "0",
    "CRAWL__RETRY_WAIT": "0.1",
    "CRAWL__MAX_WAIT": "5",
    "PERMIT__HOST_VISITS": "100",
    "PERMIT__MONOTONY": "40",
    "ANALYSE__SITEMAP_URLS": "2000",
    "SEEDS__PROBE": "false",
    "FETCH__TIMEOUT": "20",
    "FETCH__CONNECT_TIMEOUT": "10",
    "FETCH__FIRST_BYTE_TIMEOUT": "10",
    "FETCH__MIN_RATE_WINDOW": "2",
    "SANDBOX__CPU": "10",
}
"""Shorter times and fewer visits than usual, so that what has no end ends soon; the rest is as usual.

Ten seconds, for the hosts that behave are served by a process of this machine, which may be busy."""

CROWD_SETTINGS = {
    "SEEDS__PROBE": "false",
    "CRAWL__MAX_WAIT": "5",
    "CRAWL__RETRIES": "1",
    "PERMIT__HOST_BUDGET": "200",
}
"""The limits are the usual ones, but for a smaller budget and fewer retries, so that traps and servers that
never answer (30 s for each try, one URL at a time) come to an end within the crawl."""


class TrialOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the process is told."""

    folder: str
    hostile: bool
    sites: int
    pages: int
    delay: float
    workers: int
    seconds: float
    only: tuple[str, ...] = ()
    """Names or numbers of attacks; none: all of them."""
    endpoints: int = crowd.ENDPOINTS
    """Bombs in the crowd."""
    crowd: bool = False
    """The crowd of bombs and traps instead of the attacks, with good hosts of its own."""

    @property
    def attacks(self) -> list[Attack]:
        """Those that take part."""
        if not self.hostile or self.crowd:
            return []
        return [each for each in ATTACKS if not self.only or {each.name, each.number} & set(self.only)]


class AttackVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one attack."""

    number: str
    name: str
    what: str
    limit: str
    contained: bool
    wrong: str | None = None
    captures: list[tuple[str, str, str]] = []
    """URL, outcome and all that is recorded of some of its attempts."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What one crawl came to."""

    good_missing: list[str]
    good_seconds: float
    """From the start to the last answer of a good site."""
    measured: MeasuredRun
    canary: list[str]
    requests: int
    trap_requests: dict[str, int] = {}
    """To each trap of the crowd."""
    verdicts: list[AttackVerdict] = []
    fault: str = ""


class Do(Protocol):
    """Carries out a coroutine in the servers' thread."""

    def __call__(self, work: Coroutine[Any, Any, Any], /) -> Any: ...


def trial(options: TrialOptions) -> Trial:
    """Serves, crawls, and looks at what is left. This process must be in the network of its own."""
    folder = Path(options.folder)
    good = crowd.good_sites() if options.crowd else good_sites(options.sites, options.pages)
    if not options.hostile and options.crowd:
        good = {
            name: {path: page for path, page in site.items() if path != crowd.TRAP}
            for name, site in good.items()
        }
    evidence = AttackEvidence()
    with _served(options, good, evidence) as web:
        seeds = folder / "seeds"
        wanted = [f"http://{name}/" for name in good]
        wanted += [url for attack in options.attacks for url in attack.seed_urls]
        wanted += crowd.hostile_seeds(options.endpoints) if options.crowd and options.hostile else []
        seeds.write_text("\n".join(wanted) + "\n", encoding="utf-8")
        started = time.monotonic()
        measured = measure(
            _command(options, seeds),
            folder,
            seconds=options.seconds,
            environment=_environment(folder, CROWD_SETTINGS if options.crowd else SETTINGS),
        )
        evidence.log = list(web.log)
        gather(folder, evidence, served=options.hostile and not options.crowd)
    return _judged(options, evidence, measured, started)


def _judged(options: TrialOptions, evidence: AttackEvidence, measured: MeasuredRun, started: float) -> Trial:
    names = set(crowd.good_names() if options.crowd else good_names(options.sites))
    good = [each.at for each in evidence.log if each.host in names and each.path != crowd.TRAP]
    return Trial(
        good_missing=_missing(options, evidence),
        trap_requests={name: len(evidence.of_host(f"{name}.test")) for name in crowd.TRAPS if options.crowd},
        good_seconds=max(good, default=started) - started,
        measured=measured,
        canary=evidence.canary,
        requests=len(evidence.log),
        verdicts=[_verdict(attack, evidence) for attack in options.attacks],
        fault=_fault(measured, Path(options.folder)),
    )


def _missing(options: TrialOptions, evidence: AttackEvidence) -> list[str]:
    """The good documents that were not had, or not as they stand: compared quad by quad in the crowd."""
    had = {url for url, found in evidence.captures.items() if found[-1].outcome is Outcome.OK}
    if not options.crowd:
        return sorted(good_urls(options.sites, options.pages) - had)
    said: dict[str, set[str]] = {}
    for line in evidence.quads.splitlines():
        said.setdefault(line.rpartition(" <")[2].removesuffix("> ."), set()).add(line)
    wanted = crowd.expected()
    return sorted(url for url, quads in wanted.items() if url not in had or said.get(url, set()) != quads)


def _verdict(attack: Attack, evidence: AttackEvidence) -> AttackVerdict:
    wrong = attack.holds(evidence)
    of_host = [(url, found[-1]) for url, found in evidence.captures.items() if f"//{attack.host}" in url]
    captures = [
        (url, each.outcome.word, " | ".join([each.reason, *each.problems[:2]])[:400]) for url, each in of_host
    ]
    return AttackVerdict(
        number=attack.number,
        name=attack.name,
        what=attack.what,
        limit=attack.limit,
        contained=wrong is None,
        wrong=wrong,
        captures=captures[:12],
    )


def _fault(measured: MeasuredRun, folder: Path) -> str:
    if measured.stopped:
        return f"stopped after {measured.wall_seconds:.0f} s"
    if "stopped by a limit you set" in (folder / "stderr").read_text(encoding="utf-8", errors="replace"):
        return f"not over after {measured.wall_seconds:.0f} s"
    return (
        "" if measured.exit_code in (0, 5) else f"exit {measured.exit_code}: {last_line(folder / 'stderr')}"
    )


@contextmanager
def _served(options: TrialOptions, good: dict[str, Site], evidence: AttackEvidence) -> Iterator[VirtualHosts]:
    folder = Path(options.folder)
    at = addresses(list(good), WEB)
    table: dict[str, list[list[str]]] = {name: [[address]] for name, address in at.items()}
    sites: dict[str, Site] = dict(good)
    if options.hostile and options.crowd:
        bad = crowd.hostile_sites(options.endpoints)
        sites |= bad
        at |= {name: f"{WEB}210.{number + 1}" for number, name in enumerate(bad)}
        table |= {name: [[at[name]]] for name in bad}
        prepare(sites)
    elif options.hostile:
        hostile = hosts_of(ATTACKS)
        sites |= hostile
        sites |= dict.fromkeys(TLS_NAMES, sites["tls.test"])
        table |= {name: [[HOSTILE]] for name in hostile}
        table |= {name: [[address]] for name, address in zip(TLS_NAMES, TLS, strict=True)}
        table |= {"inside.test": [[INSIDE]], "rebind.test": [[HOSTILE], [INSIDE]]}
        table |= {"rebind-both.test": [[INSIDE, HOSTILE]], "localhost": [["127.0.0.1"]]}
        prepare(sites)
    web = VirtualHosts(sites)
    with in_thread() as do:
        do(_names(table))
        for address in at.values():
            do(web.listen(address, 80))
        if options.hostile and not options.crowd:
            _listen_hostile(do, web, folder)
        for address in CANARIES:
            for port in CANARY_PORTS:
                do(web.watch(address, port, evidence.canary.append))
        try:
            yield web
        finally:
            do(web.close())


def _listen_hostile(do: Do, web: VirtualHosts, folder: Path) -> None:
    authority = Authority(folder)
    do(web.listen(HOSTILE, 80))
    contexts = (
        authority.self_signed(TLS_NAMES[0]),
        authority.signed(TLS_NAMES[1], days=-1),
        authority.signed("somebody-else.test"),
    )
    for address, context in zip(TLS, contexts, strict=True):
        do(web.listen(address, 443, context))


def hosts_of(attacks: Sequence[Attack]) -> dict[str, Site]:
    """All that they serve, by host."""
    own = {attack.host: attack.pages for attack in attacks}
    return own | {name: site for attack in attacks for name, site in attack.more.items()}


async def _names(table: dict[str, list[list[str]]]) -> None:
    loop = asyncio.get_running_loop()
    await loop.create_datagram_endpoint(lambda: NameTable(table), local_addr=(NAME_SERVER, 53))


def prepare(sites: dict[str, Site]) -> None:
    """Makes what takes long to make."""
    for site in sites.values():
        for answer in site.values():
            if isinstance(answer, Bomb):
                answer.prepare()


def _command(options: TrialOptions, seeds: Path) -> list[str]:
    words = ["crawl", "--data", str(seeds.parent / "data"), "--seeds", str(seeds), "-v"]
    words += [
        "--delay",
        str(options.delay),
        "--workers",
        str(options.workers),
        "--max-time",
        str(options.seconds - 20),
    ]
    sinks = [] if options.crowd else ["--sink", "archive", "--sink", "warc"]
    return [sys.executable, "-m", "tamias", *words, *sinks]


def _environment(folder: Path, settings: Mapping[str, str]) -> dict[str, str]:
    authority = folder / "authority.pem"
    trusted = {"SSL_CERT_FILE": str(authority)} if authority.exists() else {}
    return {**{f"TAMIAS_{name}": value for name, value in settings.items()}, **trusted}


def main() -> None:
    """Reads an order from standard input and writes the trial to the order's folder."""
    options = msgspec.json.decode(sys.stdin.buffer.read(), type=TrialOptions)
    folder = Path(options.folder)
    enter(folder)
    (folder / "trial.json").write_bytes(msgspec.json.encode(trial(options)))
    sys.stdout.flush()
    os._exit(0)  # servers that never end their answers are not waited for


if __name__ == "__main__":
    main()
