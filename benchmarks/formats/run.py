"""Runs the measurements of all formats, and says which targets are met."""

import platform
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pyoxigraph

from benchmarks.formats.corpus import FORMS, CorpusFormat, write_dump, written
from benchmarks.formats.dump import DumpFigures, measure_dump
from benchmarks.formats.pages import MarkupFigures, measure_pages
from benchmarks.formats.peers import ReaderPeer, peers
from benchmarks.formats.step import collected, cpu_seconds, fetched, parsed_alone
from benchmarks.measuring.peers import Skipped
from benchmarks.measuring.targets import BenchmarkTarget, at_least, report_targets
from tamias import __version__
from tamias.crawl.analysing.extractor import Extractor
from tamias.settings import Settings

PARSER_RATIO = 0.5
EXTRUCT_RATIO = 8.0
DUMP_MEMORY = 150_000_000

Out = Callable[[str], object]


class FormatRow(msgspec.Struct, kw_only=True):
    """One format, in triples for each second of processor time."""

    form: str
    bytes: int
    tamias: float
    pyoxigraph: float | None = None
    peers: dict[str, float] = msgspec.field(default_factory=dict)
    fault: str = ""

    @property
    def ratio(self) -> float | None:
        """The whole step beside parsing alone."""
        return self.tamias / self.pyoxigraph if self.pyoxigraph else None


def run(triples: int = 200_000, out: Out = print, *, dump_triples: int = 5_000_000) -> dict[str, Any]:
    """Measures all; `ok` is false when a target is missed or a triple is."""
    extractor = Extractor(Settings())
    others = peers()
    here = [peer for peer in others if isinstance(peer, ReaderPeer)]
    out(f"Tamias {__version__}, pyoxigraph {pyoxigraph.__version__}, Python {platform.python_version()}")
    out(f"{triples} triples; thousands in a second of processor time, the best of three runs (peers: one)")
    out(_line("format", "MB", "tamias", "pyoxigraph", "ratio", *(peer.name for peer in here)))
    with TemporaryDirectory(prefix="tamias-bench-") as name:
        folder = Path(name)
        rows = [_measured(form, triples, extractor, here, folder, out) for form in FORMS]
        pages = measure_pages(extractor, folder)
        dump = _dumped(folder, dump_triples)
    skipped = [peer for peer in others if isinstance(peer, Skipped)]
    for peer in skipped:
        out(f"{peer.name}: skipped, {peer.reason}")
    _tell_pages(pages, out)
    out(
        f"gzip dump: {dump.triples} triples, {dump.links} links in {dump.seconds:.0f} s of processor time, "
        f"{dump.peak_bytes / 1e6:.0f} MB at the most"
    )
    targets = _targets(rows, pages, dump, dump_triples)
    return {**_figures(rows, skipped, pages, dump), **report_targets(targets, out)}


def _measured(
    form: CorpusFormat, triples: int, extractor: Extractor, here: list[ReaderPeer], folder: Path, out: Out
) -> FormatRow:
    path = folder / f"catalogue.{form.ending}"
    path.write_bytes(written(form, triples))
    captures = [fetched(path, form.media_type)]
    (found,) = collected(extractor, captures)
    row = FormatRow(
        form=form.name,
        bytes=path.stat().st_size,
        tamias=triples / cpu_seconds(lambda: collected(extractor, captures)),
    )
    if found.quads != triples or found.problems or found.limit:
        row.fault = f"{found.quads} of {triples} triples read {found.limit or ''} {found.problems[:1]}"
    parsed_as = form.parsed_as
    if parsed_as is not None:
        row.pyoxigraph = triples / cpu_seconds(lambda: parsed_alone(path, parsed_as))
    for peer in here:
        if form.name in peer.forms:
            row.peers[peer.name] = triples / peer.seconds(path, peer.forms[form.name])
    path.unlink()
    rates = [row.tamias, row.pyoxigraph], [row.peers.get(peer.name) for peer in here]
    mine, theirs = ([_thousands(rate) for rate in some] for some in rates)
    out(_line(row.form, f"{row.bytes / 1e6:.1f}", *mine, _times(row.ratio), *theirs))
    if row.fault:
        out(f"  {row.fault}")
    return row


def _dumped(folder: Path, triples: int) -> DumpFigures:
    path = folder / "dump.nt.gz"
    write_dump(path, triples)
    return measure_dump(path)


def _tell_pages(pages: MarkupFigures, out: Out) -> None:
    out(
        f"HTML: {pages.pages}; pages in a second of processor time: {pages.whole_step:.0f} with links, all "
        f"syntaxes and storing; {pages.four_syntaxes:.0f} for JSON-LD, Microdata, RDFa and OpenGraph"
    )
    out(
        f"extruct: skipped, {pages.skipped}"
        if pages.skipped
        else f"extruct: {pages.extruct:.1f} for the same four"
    )


def _targets(
    rows: list[FormatRow], pages: MarkupFigures, dump: DumpFigures, dump_triples: int
) -> list[BenchmarkTarget]:
    whole = sum(not row.fault for row in rows)
    all_read = dump.triples == dump_triples and not dump.problems
    peak = dump.peak_bytes
    return [
        BenchmarkTarget("every triple read in all formats", f"{whole} of {len(rows)}", whole == len(rows)),
        *(at_least(PARSER_RATIO, f"{row.form} beside pyoxigraph.parse", row.ratio)
          for row in rows if row.pyoxigraph),
        at_least(EXTRUCT_RATIO, "four syntaxes of HTML beside extruct", pages.ratio),
        BenchmarkTarget(
            f"dump of {dump_triples} triples: all read in under {DUMP_MEMORY / 1e6:.0f} MB",
            f"{dump.triples} in {peak / 1e6:.0f} MB",
            all_read and peak < DUMP_MEMORY,
        ),
    ]  # fmt: skip


def _figures(
    rows: list[FormatRow], skipped: list[Skipped], pages: MarkupFigures, dump: DumpFigures
) -> dict[str, Any]:
    """The same as the report, for programs."""
    plain = [{**msgspec.to_builtins(row), "ratio": row.ratio} for row in rows]
    return {
        "formats": plain,
        "skipped": msgspec.to_builtins(skipped),
        "html": {**msgspec.to_builtins(pages), "ratio": pages.ratio},
        "dump": msgspec.to_builtins(dump),
    }


def _line(name: str, *cells: str) -> str:
    return f"{name:<10}" + "".join(f"{cell:>14}" for cell in cells)


def _thousands(rate: float | None) -> str:
    return "-" if rate is None else f"{rate / 1000:.0f}"


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f} x"
