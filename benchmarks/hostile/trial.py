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

from benchmarks.hostile import crowd
from benchmarks.hostile.attack import Attack, Evidence
from benchmarks.hostile.attacks import ATTACKS
from benchmarks.hostile.attacks.packed import Bomb
from benchmarks.hostile.certificates import Authority
from benchmarks.hostile.gathering import gather
from benchmarks.hostile.good import good_names, good_sites, good_urls
from benchmarks.hostile.ground import CANARIES, INSIDE, NAME_SERVER, WEB, enter
from benchmarks.measuring.measure import last_line, measure
from benchmarks.measuring.reaper import Measured
from benchmarks.webs.names import NameTable
from benchmarks.webs.server import Site, Web, addresses, in_thread
from tamias.model.outcome import Outcome

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
    "FETCH__TIMEOUT": "4",
    "FETCH__CONNECT_TIMEOUT": "2",
    "FETCH__FIRST_BYTE_TIMEOUT": "2",
    "FETCH__MIN_RATE_WINDOW": "2",
    "SANDBOX__CPU": "10",
}
"""Shorter times and fewer visits than usual, so that what has no end ends soon; the rest is as usual."""

CROWD_SETTINGS = {"SEEDS__PROBE": "false", "CRAWL__MAX_WAIT": "5", "PERMIT__HOST_BUDGET": "200"}
"""The limits are the usual ones, but for a smaller budget, so that traps end within the crawl."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
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
    crowd: bool = False
    """The crowd of bombs and traps instead of the attacks, with good hosts of its own."""

    @property
    def attacks(self) -> list[Attack]:
        """Those that take part."""
        if not self.hostile or self.crowd:
            return []
        return [each for each in ATTACKS if not self.only or {each.name, each.number} & set(self.only)]


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
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
    measured: Measured
    canary: list[str]
    requests: int
    trap_requests: dict[str, int] = {}
    """To each trap of the crowd."""
    verdicts: list[Verdict] = []
    fault: str = ""


class Do(Protocol):
    """Carries out a coroutine in the servers' thread."""

    def __call__(self, work: Coroutine[Any, Any, Any], /) -> Any: ...


def trial(order: Order) -> Trial:
    """Serves, crawls, and looks at what is left. This process must be in the network of its own."""
    folder = Path(order.folder)
    good = crowd.good_sites() if order.crowd else good_sites(order.sites, order.pages)
    if not order.hostile and order.crowd:
        good = {
            name: {path: page for path, page in site.items() if path != crowd.TRAP}
            for name, site in good.items()
        }
    evidence = Evidence()
    with _served(order, good, evidence) as web:
        seeds = folder / "seeds"
        wanted = [f"http://{name}/" for name in good]
        wanted += [url for attack in order.attacks for url in attack.seed_urls]
        wanted += crowd.hostile_seeds() if order.crowd and order.hostile else []
        seeds.write_text("\n".join(wanted) + "\n", encoding="utf-8")
        started = time.monotonic()
        measured = measure(
            _command(order, seeds),
            folder,
            seconds=order.seconds,
            environment=_environment(folder, CROWD_SETTINGS if order.crowd else SETTINGS),
        )
        evidence.log = list(web.log)
        gather(folder, evidence, served=order.hostile and not order.crowd)
    return _judged(order, evidence, measured, started)


def _judged(order: Order, evidence: Evidence, measured: Measured, started: float) -> Trial:
    names = set(crowd.good_names() if order.crowd else good_names(order.sites))
    good = [each.at for each in evidence.log if each.host in names and each.path != crowd.TRAP]
    return Trial(
        good_missing=_missing(order, evidence),
        trap_requests={name: len(evidence.of_host(f"{name}.test")) for name in crowd.TRAPS if order.crowd},
        good_seconds=max(good, default=started) - started,
        measured=measured,
        canary=evidence.canary,
        requests=len(evidence.log),
        verdicts=[_verdict(attack, evidence) for attack in order.attacks],
        fault=_fault(measured, Path(order.folder)),
    )


def _missing(order: Order, evidence: Evidence) -> list[str]:
    """The good documents that were not had, or not as they stand: compared quad by quad in the crowd."""
    had = {url for url, found in evidence.captures.items() if found[-1].outcome is Outcome.OK}
    if not order.crowd:
        return sorted(good_urls(order.sites, order.pages) - had)
    said: dict[str, set[str]] = {}
    for line in evidence.quads.splitlines():
        said.setdefault(line.rpartition(" <")[2].removesuffix("> ."), set()).add(line)
    wanted = crowd.expected()
    return sorted(url for url, quads in wanted.items() if url not in had or said.get(url, set()) != quads)


def _verdict(attack: Attack, evidence: Evidence) -> Verdict:
    wrong = attack.holds(evidence)
    of_host = [(url, found[-1]) for url, found in evidence.captures.items() if f"//{attack.host}" in url]
    captures = [
        (url, each.outcome.word, " | ".join([each.reason, *each.problems[:2]])[:400]) for url, each in of_host
    ]
    return Verdict(
        number=attack.number,
        name=attack.name,
        what=attack.what,
        limit=attack.limit,
        contained=wrong is None,
        wrong=wrong,
        captures=captures[:12],
    )


def _fault(measured: Measured, folder: Path) -> str:
    if measured.stopped:
        return f"stopped after {measured.wall_seconds:.0f} s"
    if "stopped by a limit you set" in (folder / "stderr").read_text(encoding="utf-8", errors="replace"):
        return f"not over after {measured.wall_seconds:.0f} s"
    return (
        "" if measured.exit_code in (0, 5) else f"exit {measured.exit_code}: {last_line(folder / 'stderr')}"
    )


@contextmanager
def _served(order: Order, good: dict[str, Site], evidence: Evidence) -> Iterator[Web]:
    folder = Path(order.folder)
    at = addresses(list(good), WEB)
    table: dict[str, list[list[str]]] = {name: [[address]] for name, address in at.items()}
    sites: dict[str, Site] = dict(good)
    if order.hostile and order.crowd:
        bad = crowd.hostile_sites()
        sites |= bad
        at |= {name: f"{WEB}210.{number + 1}" for number, name in enumerate(bad)}
        table |= {name: [[at[name]]] for name in bad}
        prepare(sites)
    elif order.hostile:
        hostile = hosts_of(ATTACKS)
        sites |= hostile
        sites |= dict.fromkeys(TLS_NAMES, sites["tls.test"])
        table |= {name: [[HOSTILE]] for name in hostile}
        table |= {name: [[address]] for name, address in zip(TLS_NAMES, TLS, strict=True)}
        table |= {"inside.test": [[INSIDE]], "rebind.test": [[HOSTILE], [INSIDE]]}
        table |= {"rebind-both.test": [[INSIDE, HOSTILE]], "localhost": [["127.0.0.1"]]}
        prepare(sites)
    web = Web(sites)
    with in_thread() as do:
        do(_names(table))
        for address in at.values():
            do(web.listen(address, 80))
        if order.hostile and not order.crowd:
            _listen_hostile(do, web, folder)
        for address in CANARIES:
            for port in CANARY_PORTS:
                do(web.watch(address, port, evidence.canary.append))
        try:
            yield web
        finally:
            do(web.close())


def _listen_hostile(do: Do, web: Web, folder: Path) -> None:
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


def _command(order: Order, seeds: Path) -> list[str]:
    words = ["crawl", "--data", str(seeds.parent / "data"), "--seeds", str(seeds), "-v"]
    words += [
        "--delay",
        str(order.delay),
        "--workers",
        str(order.workers),
        "--max-time",
        str(order.seconds - 20),
    ]
    sinks = [] if order.crowd else ["--sink", "archive", "--sink", "warc"]
    return [sys.executable, "-m", "tamias", *words, *sinks]


def _environment(folder: Path, settings: Mapping[str, str]) -> dict[str, str]:
    authority = folder / "authority.pem"
    trusted = {"SSL_CERT_FILE": str(authority)} if authority.exists() else {}
    return {**{f"TAMIAS_{name}": value for name, value in settings.items()}, **trusted}


def main() -> None:
    """Reads an order from standard input and writes the trial to the order's folder."""
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    folder = Path(order.folder)
    enter(folder)
    (folder / "trial.json").write_bytes(msgspec.json.encode(trial(order)))
    sys.stdout.flush()
    os._exit(0)  # servers that never end their answers are not waited for


if __name__ == "__main__":
    main()
