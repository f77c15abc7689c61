"""Real histories, or made ones, through the archive and a repack, beside git, borg, restic and zstd."""

import csv
import io
import os
import shutil
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from hashlib import file_digest, sha1, sha256
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from benchmarks.measuring.targets import BenchmarkTarget, report_targets, skipped_program
from tamias.archive.blobs import BlobReader, BlobWriter, LocalPacks, insert_blobs
from tamias.archive.blobs.frames import compress_best
from tamias.content.zstd import zstd
from tamias.database.connect import Database, Session
from tamias.features.repack.recode import recode_versions
from tamias.model.capture import Body

Table = list[list[str]]
_REGIONS = ("Abruzzo", "Basilicata", "Calabria", "Campania", "Lazio", "Liguria", "Lombardia", "Marche")
_HEADER = ["day", "region", "cases", "tests", "rate", "note"]


def edited_history(name: str, count: int, days: int = 300) -> Iterator[bytes]:
    """The versions of one file; `name` is one of `KINDS`. The same words give the same bytes."""
    chance = Random(name)
    edits = KINDS[name]
    table = [_HEADER, *(row for day in range(days) for row in _day(day, chance))]
    for version in range(count):
        yield _written(table, quoted=name == "re-export" and version % 10 > 4)
        for edit, every in edits:
            if version % every == every - 1:
                table = edit(table, days + version, chance)


def _append(table: Table, day: int, chance: Random) -> Table:
    return [*table, *_day(day, chance)]


def _prepend(table: Table, day: int, chance: Random) -> Table:
    return [table[0], *_day(day, chance), *table[1:]]


def _correct(table: Table, _day: int, chance: Random) -> Table:
    changed = list(table)
    for _ in range(3):
        place = chance.randrange(1, len(table))
        row = list(table[place])
        row[2] = str(int(row[2]) + chance.randrange(-9, 10))
        changed[place] = row
    return changed


def _rename(table: Table, day: int, _chance: Random) -> Table:
    return [[*table[0][:3], f"tests_{day}", *table[0][4:]], *table[1:]]


def _sort(table: Table, day: int, _chance: Random) -> Table:
    column = day % 4
    return [table[0], *sorted(table[1:], key=lambda row: (row[column], row))]


def _day(day: int, chance: Random) -> Table:
    date = f"{2024 + day // 360}-{day // 30 % 12 + 1:02}-{day % 30 + 1:02}"
    return [
        [
            date,
            region,
            str(chance.randrange(5000)),
            str(chance.randrange(90_000)),
            f"{chance.random():.3f}",
            "",
        ]
        for region in _REGIONS
    ]


def _written(table: Table, *, quoted: bool) -> bytes:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL).writerows(table)
    return text.getvalue().encode()


Edit = Callable[[Table, int, Random], Table]
KINDS: dict[str, tuple[tuple[Edit, int], ...]] = {
    "append": ((_append, 1),),
    "newest first": ((_prepend, 1),),
    "correct": ((_append, 1), (_correct, 2)),
    "rename": ((_append, 1), (_correct, 3), (_rename, 20)),
    "re-sort": ((_append, 1), (_sort, 10)),
    "re-export": ((_append, 1), (_correct, 5)),
}


MOST_OF_GIT = 1.0
MOST_OF_CAT_FILE = 2.0
LEVEL = 3
VERSIONS = 60
TIMES = 3
COLUMNS = ("versions", "MB", "captured", "repacked", "git gc", "ratio", "read ms", "git ms")
_SECONDS = 1800

Out = Callable[[str], object]
History = tuple[str, list[Path]]


class HistoryFigures(msgspec.Struct, kw_only=True):
    """Bytes and seconds for one history."""

    name: str
    versions: int
    bytes: int
    captured: int
    """Records as they were written at the capture."""
    repacked: int
    capture_seconds: float
    """CPU time, as for repacking."""
    repack_seconds: float
    git: int = 0
    read_seconds: list[float] = []
    """Of each version, with nothing in memory."""
    git_seconds: list[float] = []
    """The same by `git cat-file`."""
    others: dict[str, int] = {}


def run_histories(place: Path | None, out: Out = print) -> dict[str, Any]:
    """Measures the histories of a folder or a tar file, or made ones; `ok` if targets are met."""
    if missing := skipped_program("git", "git"):
        raise SystemExit(f"git: {missing.reason}")
    wanted = (skipped_program("borg", "borgbackup"), skipped_program("restic", "restic"))
    absent = [each for each in wanted if each]
    backups = {name: run for name, run in _BACKUPS.items() if name not in {each.name for each in absent}}
    with TemporaryDirectory(prefix="tamias-bench-") as name:
        folder = Path(name)
        histories = _histories(place, folder / "histories")
        with closing(Database(folder / "data")) as database, closing(database.session()) as session:
            out(_line("history", *COLUMNS))
            rows = [_measured(each, session, folder, backups, out) for each in histories]
    for each in absent:
        out(f"{each.name}: skipped, {each.reason}")
    return {"histories": msgspec.to_builtins(rows), **report_targets(_targets(rows, out), out)}


def _histories(place: Path | None, folder: Path) -> list[History]:
    folder.mkdir()
    if place is None:
        for name in KINDS:
            (folder / name).mkdir()
            for number, body in enumerate(edited_history(name, VERSIONS)):
                (folder / name / f"{number:04}.csv").write_bytes(body)
        place = folder
    elif place.is_file():
        with tarfile.open(place) as packed:
            packed.extractall(folder, filter="data")
        place = folder
    folders = sorted({path.parent for path in place.rglob("*") if path.is_file()})
    found = [(str(each.relative_to(place)), _versions(each)) for each in folders]
    return [(name, files) for name, files in found if len(files) > 1]


def _versions(folder: Path) -> list[Path]:
    """Each body once."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return list({sha256(path.read_bytes()).digest(): path for path in reversed(files)}.values())[::-1]


def _measured(
    history: History, session: Session, folder: Path, backups: "Mapping[str, Backup]", out: Out
) -> HistoryFigures:
    name, files = history
    row = _archived(session, folder / "blobs", name, files)
    _git(folder / "git", files, row)
    row.others["zstd -3, file by file"] = sum(len(zstd.compress(each.read_bytes(), LEVEL)) for each in files)
    for backup, commands in backups.items():
        row.others[backup] = _backed_up(commands, folder / backup, files)
        shutil.rmtree(folder / backup)
    # All versions in one frame: nothing can be read without all before it.
    row.others["zstd -19 --long over all"] = len(compress_best(b"".join(each.read_bytes() for each in files)))
    shutil.rmtree(folder / "blobs")
    shutil.rmtree(folder / "git")
    out(_row(row))
    return row


def _archived(session: Session, folder: Path, name: str, files: Sequence[Path]) -> HistoryFigures:
    session.transact(lambda cursor: cursor.execute(b"TRUNCATE blob, pack"))
    packs = LocalPacks(folder)
    bodies = [_spooled(path) for path in files]
    with closing(BlobWriter(packs, session)) as writer:
        started = time.process_time()
        captured = _capture(session, writer, bodies)
        between = time.process_time()
        recode_versions(writer, session, [body.sha256 for body in reversed(bodies)])
        ended = time.process_time()
    stored = session.fetch_all(b"SELECT sum(length)::int8 FROM blob")[0][0]
    return HistoryFigures(
        name=name,
        versions=len(bodies),
        bytes=sum(body.size for body in bodies),
        captured=captured,
        repacked=int(stored),
        capture_seconds=between - started,
        repack_seconds=ended - between,
        read_seconds=[_read(packs, session, body) for body in bodies],
    )


def _spooled(path: Path) -> Body:
    """A file as if it had been fetched into the spool."""
    with path.open("rb") as file:
        return Body(size=path.stat().st_size, sha256=file_digest(file, "sha256").hexdigest(), path=str(path))


def _capture(session: Session, writer: BlobWriter, bodies: Sequence[Body]) -> int:
    captured, before = 0, None
    for body in bodies:
        prepared = writer.prepare(body, before)
        writer.sync()
        session.transact(partial(insert_blobs, prepared=[prepared]))
        writer.settled()
        captured += prepared.written
        before = body.sha256
    return captured


def _read(packs: LocalPacks, session: Session, body: Body) -> float:
    content, seconds = _best(lambda: BlobReader(packs, session).read(body.sha256))
    assert sha256(content).hexdigest() == body.sha256
    return seconds


def _best(read: Callable[[], bytes]) -> tuple[bytes, float]:
    """What it gives, and the shortest time of some."""
    times = []
    for _ in range(TIMES):
        started = time.perf_counter()
        content = read()
        times.append(time.perf_counter() - started)
    return content, min(times)


def _git(folder: Path, files: Sequence[Path], row: HistoryFigures) -> None:
    """One file with all its versions as commits, packed as small as git can; then each version read."""
    words = {**os.environ, "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    for who in ("AUTHOR", "COMMITTER"):
        words |= {f"GIT_{who}_NAME": "bench", f"GIT_{who}_EMAIL": "bench@example.org"}
    folder.mkdir()

    def git(*arguments: str, given: bytes = b"") -> bytes:
        command = ["git", "-C", str(folder), *arguments]
        done = subprocess.run(
            command, check=False, env=words, timeout=_SECONDS, input=given, capture_output=True
        )
        if done.returncode:
            raise SystemExit(f"git {arguments[0]}: {done.stderr.decode(errors='replace')[-500:]}")
        return done.stdout

    git("init", "-q")
    git("fast-import", "--quiet", given=b"".join(_commit(*each) for each in enumerate(files)))
    git("gc", "-q", "--force", "--aggressive", "--prune=now")
    row.git = sum(path.stat().st_size for path in (folder / ".git/objects/pack").glob("*.pack"))
    for path in files:
        body = path.read_bytes()
        named = sha1(b"blob %d\0" % len(body) + body, usedforsecurity=False).hexdigest()
        content, seconds = _best(partial(git, "cat-file", "blob", named))
        row.git_seconds.append(seconds)
        assert content == body


def _commit(number: int, path: Path) -> bytes:
    """A version as `git fast-import` reads it."""
    body = path.read_bytes()
    who = b"commit refs/heads/main\ncommitter bench <bench@example.org> %d +0000\n" % (number + 1)
    return who + b"data 0\n\nM 100644 inline file\ndata %d\n%s\n" % (len(body), body)


def _borg(store: str, files: list[str]) -> list[list[str]]:
    """Making a store, then one archive of all versions, which share chunks."""
    keep = ["borg", "create", f"--compression=zstd,{LEVEL}", f"{store}::all", *files]
    return [["borg", "init", "--encryption=none", store], keep]


def _restic(store: str, files: list[str]) -> list[list[str]]:
    keep = ["restic", "backup", "--quiet", "--compression", "max", "--repo", store, *files]
    return [["restic", "init", "--repository-version", "2", "--repo", store], keep]


Backup = Callable[[str, list[str]], list[list[str]]]
_BACKUPS: dict[str, Backup] = {"borg": _borg, "restic": _restic}


def _backed_up(commands: Backup, folder: Path, files: Sequence[Path]) -> int:
    folder.mkdir()
    store, cache = folder / "store", {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    words = {**os.environ, **cache, "RESTIC_PASSWORD": "bench"}
    for command in commands(str(store), list(map(str, files))):
        subprocess.run(command, check=True, env=words, timeout=_SECONDS, capture_output=True)
    return sum(path.stat().st_size for path in store.rglob("*") if path.is_file())


def _targets(rows: Sequence[HistoryFigures], out: Out) -> list[BenchmarkTarget]:
    stored, git = sum(row.repacked for row in rows), sum(row.git for row in rows)
    captured = sum(row.captured for row in rows)
    out(_line("all", str(sum(row.versions for row in rows)), f"{sum(row.bytes for row in rows) / 1e6:.1f}",
              *(f"{size:,}" for size in (captured, stored, git)), f"{stored / git:.2f}"))  # fmt: skip
    for name in rows[0].others:
        out(f"  {name}: {sum(row.others[name] for row in rows):,} bytes")
    out(f"  CPU: {sum(row.capture_seconds for row in rows):.1f} s to capture, "
        f"{sum(row.repack_seconds for row in rows):.1f} s to repack")  # fmt: skip
    slowest = max(max(row.read_seconds) / max(row.git_seconds) for row in rows)
    mean = _mean(rows, "read_seconds") / _mean(rows, "git_seconds")
    return [
        _at_most(MOST_OF_GIT, "repacked bytes beside git gc --aggressive", stored / git),
        _at_most(MOST_OF_CAT_FILE, "mean time to read a version beside git cat-file", mean),
        _at_most(MOST_OF_CAT_FILE, "slowest version of a history beside git cat-file's slowest", slowest),
    ]


def _mean(rows: Sequence[HistoryFigures], field: str) -> float:
    times = [seconds for row in rows for seconds in getattr(row, field)]
    return float(sum(times) / len(times))


def _at_most(most: float, text: str, value: float) -> BenchmarkTarget:
    return BenchmarkTarget(f"{text}: at most {most:g}", f"{value:.2f}", value <= most)


def _row(row: HistoryFigures) -> str:
    sizes = (f"{size:,}" for size in (row.captured, row.repacked, row.git))
    times = (f"{1000 * max(seconds):.1f}" for seconds in (row.read_seconds, row.git_seconds))
    ratio = f"{row.repacked / row.git:.2f}"
    return _line(row.name[-30:], str(row.versions), f"{row.bytes / 1e6:.1f}", *sizes, ratio, *times)


def _line(name: str, *cells: str) -> str:
    return f"{name:<32}" + "".join(f"{cell:>12}" for cell in cells)
