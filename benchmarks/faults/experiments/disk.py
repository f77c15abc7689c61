"""Disks that are full, fail, lie or rot."""

import os
import shutil
import signal
import time
from contextlib import closing
from functools import cache
from hashlib import sha256
from pathlib import Path
from random import Random

from benchmarks.faults.experiment import ExperimentSetup, Result, evidence, versions
from benchmarks.faults.inside import asking_for
from benchmarks.faults.machine import Machine, PageTree, kill, small_disk, wait_until
from benchmarks.webs.server import WireRequest
from benchmarks.webs.sites import NOTHING, SiteAnswer, serving
from tamias.archive.blobs import BlobReader, LocalPacks
from tamias.archive.references import segments
from tamias.database.connect import Database, Session
from tamias.features.check.blobs import BlobCheck
from tamias.model.errors import TamiasError

CUTS, F4_HOSTS, F4_EACH = 200, 10, 40
F4_WORDS = ("--delay", "0.2", "--workers", "1", "--sink", "archive", "--quiet")


def power_cut(setup: ExperimentSetup) -> Result:
    """At 200 moments everything stands still and what would be left is read to the last byte."""
    cuts, random, bad = setup.of(CUTS, 8), setup.random(), list[str]()
    pages, log = PageTree(setup.of(4 * F4_EACH, F4_EACH)), setup.folder / "synced"
    more = asking_for("syncs", log)
    done = rows = 0
    with (
        serving(pages, F4_HOSTS) as web,
        Machine(setup.folder) as machine,
        closing(Database(machine.data)) as database,
        closing(database.session()) as session,
    ):
        crawl = machine.start("crawl", *F4_WORDS, *pages.first(web), more=more)
        wait_until(lambda: log.exists() and web.pages(), 60, "the crawl began")
        while done < cuts and crawl.poll() is None:
            time.sleep(random.uniform(0.01, 0.1))
            stopped = [pid for pid in machine.workers(crawl) if kill(pid, signal.SIGSTOP)]
            try:
                problems, rows = _after_a_cut(machine.data, log, setup.folder / "left", session)
                bad += problems
            finally:
                for pid in stopped:
                    kill(pid, signal.SIGCONT)
            done += 1
    return Result(
        ok=done > 0 and rows > 0 and not bad,
        figure=f"{done - len(bad)} of {done} cuts left every committed row with its bytes ({rows} blobs at"
        " the last); the database's own log is PostgreSQL's" + "".join(f"; {each}" for each in bad[:1]),
    )


def _after_a_cut(data: Path, log: Path, left: Path, session: Session) -> tuple[list[str], int]:
    """What is wrong with what would be left, at most one thing; and the blobs that are there."""
    synced, named = _synced(log)
    shutil.rmtree(left, ignore_errors=True)
    left.mkdir()
    for pack in (data / "blobs").glob("*.pack"):
        if str(pack) in named:
            (left / pack.name).write_bytes(pack.read_bytes()[: synced.get(str(pack), 0)])
    check = BlobCheck(LocalPacks(left), session)
    wrong = [damage.problem for damage in check.damages() if damage.sha256 is not None]
    sizes = {Path(path).name: size for path, size in synced.items()}
    for segment in segments(session):
        size = sizes.get(segment.name, 0)
        if segment.committed > size:
            wrong.append(f"segment {segment.name} has {segment.committed} bytes committed and {size} synced")
    return wrong[:1], check.blobs


def _synced(log: Path) -> tuple[dict[str, int], set[str]]:
    """The size of each file that is sure, and the names that are."""
    sizes: dict[str, int] = {}
    names = set()
    for line in log.read_text(encoding="utf-8").splitlines():
        path, _, fact = line.partition("\t")
        if fact == "named":
            names.add(path)
        elif fact.isdigit():
            sizes[path] = int(fact)
    return sizes, names


MEGABYTES = 64
F5_HOSTS, F5_EACH = 10, 120
FULL_SECONDS = 8.0
MOST_PAUSE, MOST_RESUME = 2.0, 10.0
F5_WORDS = ("--delay", "0.2", "--workers", "1", "--sink", "archive")


def disk_full(setup: ExperimentSetup) -> Result:
    """An archive on 64 MiB: fetching stops, says why, and goes on when there is room."""
    if os.geteuid() != 0:
        return Result(figure="a disk of its own takes root")
    pages = PageTree(setup.of(F5_EACH, 60))
    with (
        small_disk(setup.folder / "data" / "blobs", MEGABYTES) as disk,
        serving(pages, F5_HOSTS) as web,
        Machine(setup.folder, CRAWL__ROOM="4") as machine,
    ):
        crawl = machine.start("crawl", *F5_WORDS, *pages.first(web))
        wait_until(lambda: len(web.pages()) > 2 * F5_HOSTS, 60, "the crawl was under way")
        disk.fill()
        full_at = time.monotonic()
        time.sleep(FULL_SECONDS)
        stopped = max(visit.at for visit in web.pages()) - full_at
        asked, said = len(web.pages()), "no disk space left" in machine.said()
        disk.free()
        resumed = wait_until(lambda: len(web.pages()) > asked, 60, "the crawl went on")
        code = crawl.wait(300)
        truth, found = pages.truth(web), evidence(machine.data)
    lost, wrong = found.lost(truth), found.wrong(truth) + len(found.damages)
    return Result(
        ok=code == 0 and lost == wrong == 0 and said and stopped <= MOST_PAUSE and resumed <= MOST_RESUME,
        figure=f"last request {max(0.0, stopped):.1f} s after it was full"
        f"{'' if said else ', without a word'},"
        f" first one {resumed:.1f} s after there was room; {lost} of {len(truth)} lost, {wrong} torn,"
        f" exit {code}",
    )


VERSIONS, F6_HOSTS = 5000, 50
SHARE, FAILING = 0.01, 0.25
MOST_STARTS = 200
SECONDS = 300.0
F6_WORDS = ("--delay", "0.02", "--workers", "2", "--sink", "archive", "--quiet")


def bad_writes(setup: ExperimentSetup) -> Result:
    """1 % of the writes to the archive is broken, a quarter of these with EIO; then all is read again."""
    pages = PageTree(setup.of(VERSIONS, 250) // F6_HOSTS)
    with serving(pages, F6_HOSTS) as web, Machine(setup.folder) as machine:
        machine.run("check")  # the database is made before anything breaks
        more = asking_for("writes", machine.data, SHARE, FAILING, setup.seed)
        code, starts = 1, 0
        while code != 0 and starts < MOST_STARTS:
            starts += 1
            code = machine.start("crawl", *F6_WORDS, *pages.first(web), more=more).wait(SECONDS)
        truth, found = pages.truth(web), evidence(machine.data)
        broken = setup.folder / "data.broken"
        count = broken.stat().st_size if broken.exists() else 0
    lost, wrong = found.lost(truth), found.wrong(truth) + len(found.damages)
    return Result(
        ok=code == 0 and count > 0 and lost == wrong == 0,
        figure=f"{count} broken writes in {len(truth):,} versions: {wrong} corrupt, {lost} lost,"
        f" the crawl was started {starts} times",
    )


F13_HOSTS, F13_EACH, FLIPS = 10, 20, 50
F13_WORDS = ("--delay", "0", "--workers", "1", "--sink", "archive", "--quiet")


def blob_flipped(setup: ExperimentSetup) -> Result:
    """`tamias check` must tell of every one that harms a body, and no harmed body may be given back."""
    pages, random = PageTree(F13_EACH), setup.random()
    with (
        serving(pages, F13_HOSTS) as web,
        Machine(setup.folder) as machine,
        closing(Database(machine.data)),  # open all the time, so that the server is started once
    ):
        code = machine.run("crawl", *F13_WORDS, *pages.first(web))
        pack = max((machine.data / "blobs").glob("*.pack"), key=lambda path: path.stat().st_size)
        sound, reported, wrong, unreported = pack.read_bytes(), 0, 0, 0
        flips = setup.of(FLIPS, 10)
        for _ in range(flips):
            place = random.randrange(len(sound))
            flipped = bytearray(sound)
            flipped[place] ^= 1 << random.randrange(8)
            pack.write_bytes(flipped)
            is_reported = bool(evidence(machine.data).damages)
            other, refused = _read(machine)
            reported, wrong = reported + is_reported, wrong + other
            unreported += not is_reported and other + refused > 0
        pack.write_bytes(sound)
        whole = not evidence(machine.data).damages
    return Result(
        ok=code == wrong == unreported == 0 and reported > 0 and whole,
        figure=f"{reported} of {flips} flipped bits reported by check, {unreported} of the others did damage,"
        f" {wrong} wrong bodies returned",
    )


def _read(machine: Machine) -> tuple[int, int]:
    """Bodies that are given back and are not what was kept, and those that are not given back."""
    wrong = refused = 0
    with closing(Database(machine.data, create=False)) as database, closing(database.session()) as session:
        reader = BlobReader(LocalPacks(machine.data / "blobs"), session)
        for digest in {digest for each in versions(session).values() for digest in each}:
            try:
                wrong += sha256(reader.read(digest)).hexdigest() != digest
            except TamiasError:
                refused += 1
    return wrong, refused


F19_HOSTS, F19_EACH, LINES, CUT, TIMES = 4, 10, 800, 100, 10
F19_WORDS = ("--delay", "0", "--workers", "1", "--depth", "0", "--quiet")


def segment_cut(setup: ExperimentSetup) -> Result:
    """Export must give everything else and name the rest, and `check --repair` with a crawl must mend it."""
    random = setup.random()
    times, wrong, unsaid, unmended, most = setup.of(TIMES, 1), 0, 0, 0, 0
    with serving(_page, F19_HOSTS) as web, Machine(setup.folder) as machine:
        seeds = [web.url(host, f"/{number}") for host in web.hosts for number in range(F19_EACH)]
        code = machine.run("crawl", *F19_WORDS, *seeds)
        whole = _exported(machine, setup.folder / "whole")[1]
        for _ in range(times):
            segment = max((machine.data / "rdf").glob("*.nq.zst"), key=lambda path: path.stat().st_size)
            sound = segment.read_bytes()
            place = random.randrange(len(sound) - CUT)
            segment.write_bytes(sound[:place] + sound[place + CUT :])
            ended, found = _exported(machine, setup.folder / "cut")
            missing = set(whole) - set(found)
            most = max(most, len(missing))
            wrong += any(found[graph] != whole[graph] for graph in found)
            unsaid += ended != 1 or any(f"missing: {graph}" not in machine.said() for graph in missing)
            machine.run("check", "--repair")
            machine.run("crawl", *F19_WORDS, *seeds)
            unmended += _exported(machine, setup.folder / "mended") != (0, whole)
            segment.write_bytes(sound)  # the next cut is the only one again
    return Result(
        ok=code == wrong == unsaid == unmended == 0 and 0 < most < len(whole) // 2,
        figure=f"{CUT} bytes cut {times} times: at most {most} of {len(whole)} documents missing,"
        f" {unsaid} times not reported, {wrong} times others damaged,"
        f" {unmended} times not repaired by a crawl",
    )


@cache
def _body(path: str) -> bytes:
    random = Random(path)
    return "".join(f'<#{n}> <#says> "{random.randbytes(60).hex()}" .\n' for n in range(LINES)).encode()


def _page(asked: WireRequest) -> SiteAnswer:
    return SiteAnswer(body=_body(asked.path)) if asked.path.removeprefix("/").isdigit() else NOTHING


def _exported(machine: Machine, file: Path) -> tuple[int, dict[str, set[bytes]]]:
    """How it ended, and the statements of each document."""
    code = machine.run("export", "-o", str(file))
    graphs: dict[str, set[bytes]] = {}
    for line in file.read_bytes().splitlines():
        graphs.setdefault(line.rsplit(b" ", 2)[1].strip(b"<>").decode(), set()).add(line)
    return code, graphs
