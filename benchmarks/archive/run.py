"""Runs the measurements of the archive, and says which targets are met."""

import platform
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from benchmarks.archive.corpus import FORMS, DatasetFormat, versions
from benchmarks.archive.ingest import Ingested, ingest
from benchmarks.archive.peers import ArchivePeer, PeerFigures, peers
from benchmarks.archive.small import SmallFigures, measure_small
from benchmarks.measuring.peers import Skipped
from benchmarks.measuring.targets import BenchmarkTarget, at_least, report_targets
from tamias import __version__
from tamias.database.connect import Database, Session

RATIOS = {"CSV": 15.0, "JSON": 25.0, "N-Triples": 50.0}
ZSTD_RATIO = 8.0
INGEST_RATIO = 0.7
RESTORE_SECONDS = 1.0
MOST_GROWTH = 50_000_000
TIMES = 3

Out = Callable[[str], object]


class ArchiveRow(msgspec.Struct, kw_only=True):
    """One kind of dataset, and what each keeper made of it."""

    form: str
    bytes: int
    tamias: Ingested
    cold_seconds: float
    """Of processor time, when the version before is never at hand."""
    zstd: PeerFigures
    peers: dict[str, PeerFigures]

    @property
    def ratio(self) -> float:
        """Bytes that came in for one that is stored."""
        return self.bytes / self.tamias.stored

    @property
    def speed(self) -> float:
        """Beside zstd, file by file."""
        return self.zstd.seconds / self.tamias.seconds


def run(
    size: int = 20_000_000, count: int = 10, resources: int = 100_000, out: Out = print
) -> dict[str, Any]:
    """Measures all; `ok` is false when a target is missed."""
    others = peers()
    here = [peer for peer in others if isinstance(peer, ArchivePeer)]
    skipped = [peer for peer in others if isinstance(peer, Skipped)]
    out(f"Tamias {__version__}, Python {platform.python_version()}; {count} versions of {size / 1e6:g} MB")
    out("ratio: bytes in for a byte stored; MB/s: in a second of processor time, the best of three runs")
    out(_line("", "tamias", "", "", *(f"{peer.name}" for peer in here), "restore of"))
    out(_line("dataset", "ratio", "MB/s", "cold MB/s", *("ratio, MB/s" for _ in here), "oldest, newest"))
    with TemporaryDirectory(prefix="tamias-bench-") as name:
        folder = Path(name)
        with closing(Database(folder / "data")) as database, closing(database.session()) as session:
            rows = [_measured(form, size, count, session, here, folder, out) for form in FORMS]
            small = measure_small(session, folder / "small", resources)
    for peer in skipped:
        out(f"{peer.name}: skipped, {peer.reason}")
    _tell_small(small, out)
    targets = _targets(rows, small)
    return {**_figures(rows, skipped, small), **report_targets(targets, out)}


def _measured(
    form: DatasetFormat,
    size: int,
    count: int,
    session: Session,
    here: list[ArchivePeer],
    folder: Path,
    out: Out,
) -> ArchiveRow:
    place = folder / "versions"
    place.mkdir()
    files = []
    for number, body in enumerate(versions(form, size, count)):
        files.append(place / f"{number}.{form.ending}")
        files[-1].write_bytes(body)
    kept, ours = _kept(session, files, folder, here)
    row = ArchiveRow(
        form=form.name,
        bytes=sum(path.stat().st_size for path in files),
        tamias=ours,
        cold_seconds=_ingested(session, files, folder, cold=True).seconds,
        zstd=kept["zstd -3"],
        peers=kept,
    )
    shutil.rmtree(place)
    out(_row_line(row))
    return row


def _kept(
    session: Session, files: list[Path], folder: Path, here: list[ArchivePeer]
) -> tuple[dict[str, PeerFigures], Ingested]:
    """The best of some runs, ours and zstd's in turn; the backup programs run once."""
    ours, zstd = [], []
    quick, *slow = here
    for _ in range(TIMES):
        zstd.append(_kept_by(quick, files, folder))
        ours.append(_ingested(session, files, folder))
    kept = {quick.name: min(zstd, key=lambda run: run.seconds)}
    kept |= {peer.name: _kept_by(peer, files, folder) for peer in slow}
    return kept, min(ours, key=lambda run: run.seconds)


def _ingested(session: Session, files: list[Path], folder: Path, *, cold: bool = False) -> Ingested:
    figures = ingest(session, folder / "blobs", files, cold=cold)
    shutil.rmtree(folder / "blobs")
    return figures


def _kept_by(peer: ArchivePeer, files: list[Path], folder: Path) -> PeerFigures:
    figures = peer.keep(files, folder / "peer")
    shutil.rmtree(folder / "peer")
    return figures


def _tell_small(small: SmallFigures, out: Out) -> None:
    each = small.bytes / small.captures / 1000
    out(f"{small.resources:,} small resources, two versions of {each:.0f} kB each:")
    out(f"  {small.captures / small.seconds:,.0f} captures a second")
    out(f"  {small.stored / small.captures:,.0f} bytes a version in packs, {small.row_bytes} in the database")
    memory = small.warm_memory / 1e6, small.end_memory / 1e6
    out(f"  {memory[0]:.0f} MB resident after a fifth of them, {memory[1]:.0f} MB at the end")


def _targets(rows: list[ArchiveRow], small: SmallFigures) -> list[BenchmarkTarget]:
    csv = next(row for row in rows if row.form == "CSV")
    less = csv.zstd.stored / csv.tamias.stored
    growth = small.end_memory - small.warm_memory
    return [
        *(at_least(RATIOS[row.form], f"ratio on {row.form}", row.ratio)
          for row in rows if row.form in RATIOS),
        at_least(ZSTD_RATIO, "less than zstd file by file on CSV", less),
        *(at_least(INGEST_RATIO, f"ingest of {row.form} beside zstd -3", row.speed) for row in rows),
        *(_restores(row) for row in rows),
        BenchmarkTarget(
            f"memory with small resources grows by less than {MOST_GROWTH / 1e6:.0f} MB",
            f"{growth / 1e6:.0f} MB",
            growth < MOST_GROWTH,
        ),
    ]  # fmt: skip


def _restores(row: ArchiveRow) -> BenchmarkTarget:
    slowest = max(row.tamias.oldest_seconds, row.tamias.newest_seconds)
    text = f"oldest and newest of {row.form} each under {RESTORE_SECONDS:g} s"
    return BenchmarkTarget(text, f"{slowest:.2f} s", slowest < RESTORE_SECONDS)


def _figures(rows: list[ArchiveRow], skipped: list[Skipped], small: SmallFigures) -> dict[str, Any]:
    """The same as the report, for programs."""
    return {
        "datasets": [{**msgspec.to_builtins(row), "ratio": row.ratio, "speed": row.speed} for row in rows],
        "skipped": msgspec.to_builtins(skipped),
        "small": msgspec.to_builtins(small),
    }


def _row_line(row: ArchiveRow) -> str:
    kept = [f"{row.bytes / peer.stored:.1f}, {_rate(row, peer.seconds)}" for peer in row.peers.values()]
    restored = f"{row.tamias.oldest_seconds:.2f} s, {row.tamias.newest_seconds:.2f} s"
    own = (f"{row.ratio:.1f}", _rate(row, row.tamias.seconds), _rate(row, row.cold_seconds))
    return _line(row.form, *own, *kept, restored)


def _rate(row: ArchiveRow, seconds: float) -> str:
    return f"{row.bytes / 1e6 / seconds:.0f}" if seconds else "-"


def _line(name: str, *cells: str) -> str:
    return (
        f"{name:<14}"
        + "".join(f"{cell:>12}" for cell in cells[:3])
        + "".join(f"{cell:>18}" for cell in cells[3:])
    )
