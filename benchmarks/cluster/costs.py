"""The same crawl on one PostgreSQL server and on a Citus cluster: processor time of the servers, and wall."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.cluster import programs_of, servers
from benchmarks.crawl.site import SiteSize, StaticSite, build_site
from benchmarks.crawl.web import read_visits, serving
from benchmarks.measuring.children import free_ports
from benchmarks.measuring.proc import members
from tamias.model.errors import TamiasError

SHARDS = 8
BUCKETS = 16
_TICKS = os.sysconf("SC_CLK_TCK")


class CitusRow(msgspec.Struct, frozen=True, kw_only=True):
    """One crawl."""

    name: str
    pages: int
    wall: float
    cpu: tuple[float, ...]
    """Seconds of each server, the coordinator first."""

    @property
    def total(self) -> float:
        """Of all servers."""
        return sum(self.cpu)


def run(pages: int, hosts: int, out: Callable[[str], None] = print) -> dict[str, object]:
    """Prints a line for each way; the last two are one cluster, with and without asking nodes directly."""
    citus, postgres = servers("citus"), servers("postgres")
    programs = programs_of(citus)
    rows: list[CitusRow] = []
    with tempfile.TemporaryDirectory(prefix="tamias-citus-", ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary)
        folder.chmod(0o755)  # the servers have an account of their own
        site = build_site(SiteSize(pages, hosts), folder / "site", *free_ports(1))

        def add(name: str, url: str, buckets: int, servers: Sequence[Any], *, spread: bool = False) -> None:
            rows.append(_crawl(name, url, buckets, servers, site, folder, spread=spread))
            row, first = rows[-1], rows[0]
            out(
                f"{row.name:34}{row.pages:7} pages {row.wall:7.1f} s {row.total:7.2f} s of processors"
                f" {1000 * row.total / max(1, row.pages):6.2f} ms a page"
                f" {row.total / first.total:5.2f} x plain {row.wall / first.wall:5.2f} x wall"
            )

        with postgres.start(folder / "plain", programs, ("wal_level=logical",)) as server:
            server.make_owner()
            add(f"plain, {BUCKETS} buckets", server.make_database("parted"), BUCKETS, [server])
            add("plain, 1 bucket", server.make_database("one"), 1, [server])
        with citus.start(folder / "citus", programs) as cluster:
            words = f"{BUCKETS} buckets, {len(cluster.nodes)} nodes"
            add(f"Citus, {words}", cluster.make_database("asked"), BUCKETS, cluster.servers, spread=True)
            url = f"{cluster.make_database('planned')}&nodes=off"
            add("Citus, by the coordinator", url, BUCKETS, cluster.servers, spread=True)
    return {"rows": msgspec.to_builtins(rows), "ratio": rows[2].total / rows[0].total}


def _crawl(
    name: str, url: str, buckets: int, servers: Sequence[Any], site: StaticSite, folder: Path, *, spread: bool
) -> CitusRow:
    own = folder / name.replace(",", "").replace(" ", "-")
    environment = {
        **os.environ,
        "TAMIAS_DB": url,
        "TAMIAS_FRONTIER__BUCKETS": str(buckets),
        "TAMIAS_FRONTIER__QUEUE": "host",
        "TAMIAS_SEEDS__PROBE": "false",
    }

    def tamias(*words: str) -> None:
        command = [sys.executable, "-m", "tamias", *words, "--data", str(own / "data")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode not in {0, 5}:
            raise TamiasError(f"tamias {words[0]} ended with {done.returncode}: {done.stderr[-300:]}")

    options = ("--delay", "0", "--allow-private", "-q", "--workers", "2")
    if spread:
        tamias("cluster", "init", "--shards", str(SHARDS))
    tamias("crawl", site.seed, "--max-time", "0", *options)  # makes the tables, which is not counted
    with serving(site, own / "nginx") as log:
        before, begun = [_used(server) for server in servers], time.monotonic()
        tamias("crawl", *options)
        wall = time.monotonic() - begun
        used = [_used(server) - earlier for server, earlier in zip(servers, before, strict=True)]
    return CitusRow(name=name, pages=read_visits(log).pages, wall=wall, cpu=tuple(used))


def _used(server: Any) -> float:
    """Processor seconds of a server so far, with those of its processes, also of those that have ended."""
    pid = server.process.pid
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(") ")[2].split()
    ticks = sum(int(field) for field in fields[11:15])
    return ticks / _TICKS + sum(each.cpu_seconds for each in members(pid))
