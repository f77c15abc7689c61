"""`python -m benchmarks report`: every peer in one run, as ratios, on one page."""

import os
import platform
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from benchmarks.frontier.grpc.experiment import PHASES, SERIAL, Run

Out = Callable[[str], object]

PEERS = {
    "pages": ("scrapy", "wget -r", "wget2", "httrack", "heritrix"),
    "documents": ("scrapy", "rdf-dereference", "comunica"),
    "frontier": tuple(f"URLFrontier (Java): {each}" for each in (*PHASES, "memory")),
    "versions": ("git gc", "borg", "restic", "zstd -3, file by file", "zstd -19 --long over all"),
}
"""Who is compared in each part; one that did not run has a row all the same."""

REASONS = {
    "wget -r": "fetches and writes files, looks for links only, and keeps no frontier, record or provenance",
    "wget2": "the same as wget, in several threads of C",
    "httrack": "a crawler in C that keeps files; it stores no statements and no provenance",
    "rdf-dereference": "parses and prints; it stores nothing, obeys no robots.txt and keeps no frontier",
    "comunica": "evaluates one query in memory and stores nothing",
    "scrapy": "our spider for it stores nothing; start-up weighs more in a small crawl",
    "heritrix": "a Java crawler that writes WARC; its start-up is not ours",
    "git gc": "one pack for one history, which cannot be appended to without packing it again",
    "frontier": "it never waits for the disk, and keeps holds in memory; ours are rows of a database",
    "zstd -19 --long over all": "one frame: no version can be read without all before it",
}
"""Why a peer, or all of a part, can be ahead; printed for those that are."""
FRONTIER_QUEUES = 4_000


class PeerRatios(msgspec.Struct, kw_only=True):
    """One peer in one measure: ratios of several runs, each above 1 where Tamias is ahead."""

    part: str
    measure: str
    peer: str
    version: str = ""
    terms: str = ""
    ratios: list[float] = []
    absent: str = ""

    @property
    def middle(self) -> float:
        return median(self.ratios)


class ReportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How large the parts are."""

    runs: int = 3
    pages: tuple[int, ...] = (3_000, 20_000)
    nodes: int = 40
    histories: Path | None = None
    """A tar file or folder of real histories; without one they are made."""
    urls: int = 100_000
    """That the frontier service is compared with; 0 leaves it out."""
    jar: Path | None = None
    """The service of the Java reference; without it its rows are empty."""
    install: bool = False


def run(options: ReportOptions, page: Path | None, command: str, out: Out = print) -> dict[str, Any]:
    """Runs all parts and writes the page."""
    if options.install:
        from benchmarks.dataweb.crawlers.rivals import install_peers

        install_peers()
    rows: dict[tuple[str, str], PeerRatios] = {}
    for pages in options.pages:
        repeat(rows, options.runs, partial(_pages, pages, out))
    if options.nodes:
        repeat(rows, options.runs, partial(_documents, options.nodes, out))
    if options.urls:
        repeat(rows, options.runs, partial(_frontier, options.urls, options.jar, out))
    repeat(rows, 1, partial(_versions, options.histories, out))  # sizes do not vary
    found = list(rows.values())
    text = "\n".join(page_lines(found, options, command)) + "\n"
    if page is not None:
        page.write_text(text, encoding="utf-8")
    out(text)
    return {"rows": msgspec.to_builtins(found), "ok": True}


def repeat(
    rows: dict[tuple[str, str], PeerRatios], runs: int, part: Callable[[], Iterable[PeerRatios]]
) -> None:
    """Adds the ratios of each run to those of the runs before it."""
    for _ in range(runs):
        for row in part():
            before = rows.setdefault((row.measure, row.peer), row)
            if before is not row:
                before.ratios += row.ratios


def _pages(pages: int, out: Out) -> list[PeerRatios]:
    from benchmarks.crawl.run import run as crawl

    figures = crawl(pages, max(20, pages // 40), out=out)
    measure = f"{pages:,} pages of 31 kB, pages per CPU-second"
    rates = {row["tool"]: row["pages_per_cpu_second"] for row in figures["rows"]}
    said = {row["tool"]: (row["version"], row["terms"]) for row in figures["rows"]}
    return compared("pages", measure, rates, said, figures["skipped"])


def _documents(nodes: int, out: Out) -> list[PeerRatios]:
    from benchmarks.dataweb.run import DataWebSize
    from benchmarks.dataweb.run import run as crawl

    figures = crawl(("II",), DataWebSize(nodes=nodes), peers=PEERS["documents"], out=out)
    found = figures["experiments"][0]
    measure = f"{found['resources']:,} small documents, resources per CPU-second"
    rates = {each["name"]: each["resources_per_cpu_second"] for each in found["outcomes"]}
    said = {each["name"]: (each["version"], _recall(each)) for each in found["outcomes"]}
    return compared("documents", measure, rates, said, found["skipped"])


def _recall(outcome: Mapping[str, Any]) -> str:
    recall = outcome.get("recall")
    return f"{outcome['terms']}" + ("" if recall is None else f"; recall {recall:.3f}")


def compared(
    part: str,
    measure: str,
    rates: Mapping[str, float],
    said: Mapping[str, tuple[str, str]],
    skipped: Sequence[Mapping[str, str]],
) -> list[PeerRatios]:
    """A row for each peer of a part: its rate beside ours in this run, or why there is none."""
    absent = defaultdict(lambda: "it did not run", {each["name"]: each["reason"] for each in skipped})
    rows = []
    for peer in PEERS[part]:
        row = PeerRatios(part=part, measure=measure, peer=peer)
        if rates.get(peer):
            row.ratios = [rates["tamias"] / rates[peer]]
            row.version, row.terms = said[peer]
        else:
            row.absent = absent[peer]
        rows.append(row)
    return rows


def _frontier(urls: int, jar: Path | None, out: Out) -> list[PeerRatios]:
    from benchmarks.frontier import grpc as service

    measure = f"{urls:,} URLs over gRPC in {FRONTIER_QUEUES:,} queues, URLs per second; memory at the end"
    rows = [PeerRatios(part="frontier", measure=measure, peer=peer) for peer in PEERS["frontier"]]
    if jar is None or shutil.which("java") is None:
        absent = "no jar was named (--reference)" if jar is None else "there is no java"
        return [msgspec.structs.replace(row, absent=absent) for row in rows]
    measured = service.measure(urls, FRONTIER_QUEUES, None, jar, (), out)
    for row, (ratio, terms) in zip(rows, frontier_ratios(measured), strict=True):
        row.version, row.terms, row.ratios = jar.stem, terms, [ratio]
    return rows


def frontier_ratios(run: Run) -> Iterator[tuple[float, str]]:
    """Of each phase, then of memory: the ratio in one run, and what to know about it."""
    ours, theirs = run.phases.values()
    for own, other in zip(ours, theirs, strict=True):
        cpu = f"CPU of a URL {own.cpu:.0f} and {other.cpu:.0f} µs"
        sync = own.per_second / run.syncs
        yield (
            own.per_second / other.per_second,
            f"{cpu}; {sync:.2f} of the syncs of the disk" if own.name == SERIAL else cpu,
        )
    own_memory, other_memory = run.memory.values()
    yield other_memory / own_memory, f"{own_memory >> 20} and {other_memory >> 20} MiB"


def _versions(histories: Path | None, out: Out) -> list[PeerRatios]:
    from benchmarks.archive.histories import run_histories

    figures = run_histories(histories, out)["histories"]
    own = sum(each["repacked"] for each in figures)
    sizes = {"git gc": sum(each["git"] for each in figures)}
    for name in figures[0]["others"]:
        sizes[name] = sum(each["others"][name] for each in figures)
    count = sum(each["versions"] for each in figures)
    measure = f"{count:,} versions of {len(figures)} files, bytes of the peer / ours after a repack"
    rows = []
    for peer in PEERS["versions"]:
        row = PeerRatios(part="versions", measure=measure, peer=peer, terms=f"{sizes.get(peer, 0):,} bytes")
        row.ratios = [sizes[peer] / own] if peer in sizes else []
        row.absent = "" if peer in sizes else "it is not installed"
        rows.append(row)
    return rows


def page_lines(rows: Sequence[PeerRatios], options: ReportOptions, command: str) -> Iterator[str]:
    """The page in Markdown."""
    yield "# Beside others"
    yield ""
    yield f"Written by `{command}` on {datetime.now(UTC):%Y-%m-%d}."
    yield ""
    yield (
        f"A machine with {os.cpu_count()} processors ({platform.machine()}, Linux {platform.release()}), "
        f"load {os.getloadavg()[0]:.1f} at the end. A ratio is Tamias to the peer in the same run, the "
        f"median of {options.runs} runs with the least and the greatest; above 1 Tamias is ahead. CPU is "
        "that of the whole process tree, for Tamias with its database."
    )
    for measure in dict.fromkeys(row.measure for row in rows):
        yield ""
        yield f"## {measure[:1].upper()}{measure[1:]}"
        yield ""
        yield "| peer | ratio | least | greatest | version | terms |"
        yield "|---|---|---|---|---|---|"
        for row in rows:
            if row.measure == measure:
                yield _line(row)
    yield ""
    yield "## Where others are ahead"
    yield ""
    behind = [row for row in rows if row.ratios and row.middle < 1]
    for row in behind:
        reason = REASONS.get(row.peer) or REASONS.get(row.part, "")
        yield f"- **{row.peer}** ({row.measure}, {row.middle:.2f}): {reason}."
    if not behind:
        yield "Nowhere in this run."


def _line(row: PeerRatios) -> str:
    if not row.ratios:
        return f"| {row.peer} | | | | | did not run: {row.absent} |"
    spread = f"{row.middle:.2f} | {min(row.ratios):.2f} | {max(row.ratios):.2f}"
    return f"| {row.peer} | {spread} | {row.version} | {row.terms} |"
