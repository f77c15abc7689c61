"""What a capture of a small watched resource costs: processor time of each process of a running service."""

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from benchmarks.measuring.children import answers, free_ports, running
from benchmarks.measuring.proc import members
from benchmarks.webs.server import Listeners, in_thread, read_request
from tamias.database.connect import Database, Session
from tamias.model.errors import TamiasError

VERSIONS = 2
ROWS = 20
"""Of about 100 bytes."""
SECRET = "of the benchmark, on the loopback address"  # noqa: S105 (nobody else can reach it)
TARGET_MS = 1.5
_STEP_SECONDS = 600.0
_QUIET_SECONDS = 60.0
_QUIET = 0.04
"""Processor seconds in a second of waiting."""

Out = Callable[[str], object]


class CaptureCost(msgspec.Struct, kw_only=True):
    """All first versions, or all second ones."""

    version: int
    captures: int
    seconds: float
    """By the clock, until the last one was committed."""
    cpu_ms: dict[str, float]
    """For each capture, by program, until all was profiled and had come to rest."""

    @property
    def total_ms(self) -> float:
        return sum(self.cpu_ms.values())


class SmallFiles(Listeners):
    """Hosts with small CSV files, each in versions. Answers wait until they are let through."""

    def __init__(self, hosts: list[str]) -> None:
        super().__init__()
        self.hosts = hosts
        self.version = 0
        self._open = asyncio.Event()

    async def listen(self) -> None:
        """On one port of all addresses."""
        for host in self.hosts:
            await self.accept(host, self.port, self._talk)

    async def let_through(self) -> None:
        """All requests are answered from now on."""
        self._open.set()

    def url(self, number: int) -> str:
        """The address of a file."""
        return f"http://{self.hosts[number % len(self.hosts)]}:{self.port}/{number}.csv"

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            asked = await read_request(reader)
            await self._open.wait()
            name, _, ending = asked.path[1:].partition(".")
            if ending == "csv":
                body = small_file(int(name), self.version)
                writer.write(_head(b"200 OK", len(body)) + body)
            else:
                writer.write(_head(b"404 Not Found", 0))


def _head(status: bytes, size: int) -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Type: text/csv\r\nContent-Length: %d\r\n\r\n" % (status, size)


def small_file(number: int, version: int) -> bytes:
    """A new version has one new row, and another value in one of the others."""
    chance = Random(number)
    rows = [f"{row},station-{row},{chance.random()},{chance.randbytes(24).hex()}" for row in range(ROWS)]
    rows += [f"{ROWS + each},new,{number}.{each},-" for each in range(version)]
    rows[version % ROWS] += f" in version {version}"
    return "\n".join(["id,name,value,note", *rows, ""]).encode()


def run(resources: int = 20_000, hosts: int = 50, out: Out = print) -> dict[str, Any]:
    """Has all captured twice; `ok` is false when a capture costs more than it should."""
    addresses = [f"127.88.{number // 250}.{number % 250 + 1}" for number in range(min(hosts, resources))]
    with TemporaryDirectory(prefix="tamias-bench-") as name, in_thread() as on_loop:
        web = SmallFiles(addresses)
        on_loop(web.listen())
        try:
            rounds = _measured(web, on_loop, Path(name), resources, out)
        finally:
            on_loop(web.close())
    worst = max(each.total_ms for each in rounds)
    ok = worst <= TARGET_MS
    out(f"{'met' if ok else 'missed'}: at most {TARGET_MS} ms of processor time a capture ({worst:.2f})")
    return {"rounds": msgspec.to_builtins(rounds), "ok": ok}


def tell_sizes(data: Path, session: Session, versions: int, out: Out) -> dict[str, int]:
    """Bytes on disk of an archive by part, told in all and for each version."""
    row = session.fetch_one(b"SELECT pg_database_size(current_database())")
    sizes = {"database": int(row[0]) if row else 0}
    sizes |= {part: size_on_disk(data / part) for part in ("blobs", "catalogue", "rdf")}
    parts = ", ".join(
        f"{part} {size / 1e6:.1f} MB ({size / versions:,.0f} a version)" for part, size in sizes.items()
    )
    out(f"on disk, {versions:,} versions: {parts}")
    return sizes


def size_on_disk(place: Path) -> int:
    """Bytes of a folder; a file that has several names is counted once."""
    found = {}
    for folder, _, names in os.walk(place):
        for name in names:
            with suppress(FileNotFoundError):
                stat = os.stat(os.path.join(folder, name))
                found[stat.st_ino] = stat.st_blocks * 512
    return sum(found.values())


def _measured(
    web: SmallFiles, on_loop: Callable[[Any], Any], folder: Path, resources: int, out: Out
) -> list[CaptureCost]:
    listing, data = folder / "list", folder / "data"
    listing.write_text("".join(f"{web.url(number)}\n" for number in range(resources)), encoding="ascii")
    rounds = []
    with _service(folder, data) as (pid, port), closing(Database(data)) as database:
        words = ["add", "--file", str(listing), "--data", str(data)]
        with running([sys.executable, "-m", "tamias", *words], env=_surroundings()) as process:
            process.wait(_STEP_SECONDS)
        if process.returncode:
            raise TamiasError(f"'tamias add' ended with {process.returncode}")
        with closing(database.session()) as session:
            _rest(pid)
            for version in range(VERSIONS):
                before, started = _spent(pid), time.monotonic()
                web.version = version
                if version:
                    _request(port, *(("POST", f"/api/v1/crawl?domain={host}") for host in web.hosts))
                on_loop(web.let_through())
                _wait_for(session, b"SELECT count(*) >= %d FROM version" % ((version + 1) * resources))
                seconds = time.monotonic() - started
                _wait_for(session, b"SELECT count(*) = 0 FROM profile_due")
                _request(port, ("GET", "/sparql?query=ASK%7B%7D"))  # brings the catalogue up to date
                _rest(pid)
                spent = {
                    name: (used - before.get(name, 0.0)) * 1000 / resources
                    for name, used in _spent(pid).items()
                }
                cpu = {name: round(ms, 3) for name, ms in sorted(spent.items()) if ms >= 0.005}
                cost = CaptureCost(version=version + 1, captures=resources, seconds=seconds, cpu_ms=cpu)
                _tell(cost, out)
                rounds.append(cost)
            tell_sizes(data, session, VERSIONS * resources, out)
    return rounds


@contextmanager
def _service(folder: Path, data: Path) -> Iterator[tuple[int, int]]:
    """The service with one worker, under a process that all of its helpers stay descendants of."""
    (port,) = free_ports(1)
    words = ("serve", "-q", "--allow-private", "--no-robots", "--delay", "0", "--workers", "1")
    own = [sys.executable, "-m", "tamias", *words, "--data", str(data), "--port", str(port)]
    reaper = [sys.executable, "-m", "benchmarks.measuring.reaper", str(folder / "measured"), "86400", *own]
    with running(reaper, ready=lambda: answers(port), seconds=120, env=_surroundings()) as process:
        yield process.pid, port


def _surroundings() -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TAMIAS_")}
    clean.pop("PYTHONDONTWRITEBYTECODE", None)
    return clean | {"TAMIAS_SECRET": SECRET, "TAMIAS_SCHEDULE__RULE": "fixed:86400"}


def _request(port: int, *requests: tuple[str, str]) -> None:
    """Requests by their methods and paths, with the administrator's token; raises if one is refused."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=_STEP_SECONDS)) as connection:
        for method, path in requests:
            connection.request(method, path, headers={"Authorization": f"Bearer {SECRET}"})
            answer = connection.getresponse()
            if answer.read() and answer.status >= 400:
                raise TamiasError(f"the service answered {path} with {answer.status}")


def _wait_for(session: Session, query: bytes) -> None:
    deadline = time.monotonic() + _STEP_SECONDS
    while time.monotonic() < deadline:
        row = session.fetch_one(query)
        if row is not None and row[0]:
            return
        time.sleep(0.5)
    raise TamiasError(f"not within {_STEP_SECONDS:.0f} s: {query.decode()}")


def _spent(pid: int) -> Mapping[str, float]:
    """Processor seconds so far, by program; what has ended meanwhile is not in it."""
    used: dict[str, float] = {}
    for process in members(pid):
        used[process.name] = used.get(process.name, 0.0) + process.cpu_seconds
    return used


def _rest(pid: int) -> None:
    """Until they have nothing to do any more, such as writing the catalogue."""
    deadline = time.monotonic() + _QUIET_SECONDS
    before = sum(_spent(pid).values())
    while time.monotonic() < deadline:
        time.sleep(2.0)
        now = sum(_spent(pid).values())
        if now - before < 2 * _QUIET:
            return
        before = now


def _tell(cost: CaptureCost, out: Out) -> None:
    parts = ", ".join(f"{name} {ms:.2f}" for name, ms in cost.cpu_ms.items())
    pace = cost.captures / cost.seconds
    out(f"version {cost.version}: {cost.total_ms:.2f} ms of processor time a capture ({parts}); {pace:.0f}/s")
