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

from benchmarks.crawl.peers import first_line
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
    "wget -r": "it fetches, looks for links and writes files; it keeps no frontier, record or provenance",
    "wget2": "the same as wget, in several threads of C",
    "httrack": "a crawler in C that keeps files; it stores no statements and no provenance",
    "rdf-dereference": "it parses and prints; it stores nothing, obeys no robots.txt and keeps no frontier",
    "comunica": "it evaluates one query in memory and stores nothing",
    "scrapy": "our spider for it stores nothing; start-up weighs more in a small crawl",
    "heritrix": "a Java crawler that writes WARC; its start-up is not ours",
    "git gc": "one pack for one history, which cannot be appended to without packing it again",
    "frontier": "it keeps its queues, holds and counts in the memory of one process and never waits for its "
    "disk; ours are rows of a database, which each put, hold and completion changes in a transaction",
    "zstd -19 --long over all": "one frame: no version can be read without all before it",
}
"""Why a peer, or all of a part, can be ahead; printed for those that are."""
SCRAPY_TARGETS = {20_000: 10.0, 3_000: 5.0}
"""What Scrapy is to be left behind by, at a number of pages."""
DOCUMENTS_TARGET = 2.5
GIT_TARGET = 1.0
FRONTIER_QUEUES = 4_000
NO_SYNC = ("--no-sync", "DEFAULT")
STORED = {
    "git gc": (["git", "--version"], "git gc --force --aggressive --prune=now"),
    "borg": (["borg", "--version"], "borg create --compression=zstd,3 STORE::all VERSIONS"),
    "restic": (["restic", "version"], "restic backup --compression max --repo STORE VERSIONS"),
    "zstd -3, file by file": (["zstd", "--version"], "zstd -3 VERSION"),
    "zstd -19 --long over all": (["zstd", "--version"], "cat VERSIONS | zstd -19 --long"),
}
"""How each peer of stored versions is asked for its version, and what stands for what it does."""


class PeerRatios(msgspec.Struct, kw_only=True):
    """One peer in one measure: ratios of several runs, each above 1 where Tamias is ahead."""

    part: str
    measure: str
    peer: str
    version: str = ""
    command: str = ""
    terms: str = ""
    target: float | None = None
    """The ratio that is wanted."""
    ratios: list[float] = []
    own: list[float] = []
    """Our figure in each run."""
    theirs: list[float] = []
    absent: str = ""

    @property
    def middle(self) -> float:
        return median(self.ratios)

    def add(self, ratio: float, own: float, theirs: float) -> None:
        """The figures of one more run."""
        self.ratios, self.own, self.theirs = [*self.ratios, ratio], [*self.own, own], [*self.theirs, theirs]


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
    text = ""
    for runs, part in _parts(options, out):
        repeat(rows, runs, part)
        text = "\n".join(page_lines(list(rows.values()), options, command)) + "\n"
        if page is not None:  # after each part: a fault in a later one takes nothing away
            page.write_text(text, encoding="utf-8")
    out(text)
    return {"rows": msgspec.to_builtins(list(rows.values())), "ok": True}


def _parts(options: ReportOptions, out: Out) -> Iterator[tuple[int, Callable[[], Iterable[PeerRatios]]]]:
    """How often each part is run, and what does it."""
    yield 1, partial(_versions, options.histories, out)  # sizes do not vary
    for durable in (True, False) if options.urls else ():
        yield options.runs, partial(_frontier, options, durable, out)
    if options.nodes:
        yield options.runs, partial(_documents, options.nodes, out)
    for pages in options.pages:
        yield options.runs, partial(_pages, pages, out)


def repeat(
    rows: dict[tuple[str, str], PeerRatios], runs: int, part: Callable[[], Iterable[PeerRatios]]
) -> None:
    """Adds the ratios of each run to those of the runs before it."""
    for _ in range(runs):
        for row in part():
            before = rows.setdefault((row.measure, row.peer), row)
            if before is not row:
                for figures in zip(row.ratios, row.own, row.theirs, strict=True):
                    before.add(*figures)


def _pages(pages: int, out: Out) -> list[PeerRatios]:
    from benchmarks.crawl.run import run as crawl

    figures = crawl(pages, max(20, pages // 40), out=out)
    measure = f"{pages:,} pages of 31 kB, pages per CPU-second"
    rates = {row["tool"]: row["pages_per_cpu_second"] for row in figures["rows"]}
    said = {row["tool"]: (row["version"], row["terms"], row["command"]) for row in figures["rows"]}
    rows = compared("pages", measure, rates, said, figures["skipped"])
    rows[0].target = SCRAPY_TARGETS.get(pages)
    return rows


def _documents(nodes: int, out: Out) -> list[PeerRatios]:
    from benchmarks.dataweb.run import DataWebSize
    from benchmarks.dataweb.run import run as crawl

    figures = crawl(("II",), DataWebSize(nodes=nodes), peers=PEERS["documents"], out=out)
    found = figures["experiments"][0]
    measure = f"{found['resources']:,} small documents, resources per CPU-second"
    rates = {each["name"]: each["resources_per_cpu_second"] for each in found["outcomes"]}
    said = {}
    for each in found["outcomes"]:
        recall = f"; recall {each['recall']:.3f}" if "recall" in each else ""
        said[each["name"]] = (each["version"], f"{each['terms']}{recall}", each["command"])
    rows = compared("documents", measure, rates, said, found["skipped"])
    for row in rows[1:]:
        row.target = DOCUMENTS_TARGET
    return rows


def compared(
    part: str,
    measure: str,
    rates: Mapping[str, float],
    said: Mapping[str, tuple[str, str, str]],
    skipped: Sequence[Mapping[str, str]],
) -> list[PeerRatios]:
    """A row for each peer of a part: its rate beside ours in this run, or why there is none."""
    absent = defaultdict(lambda: "it did not run", {each["name"]: each["reason"] for each in skipped})
    rows = []
    for peer in PEERS[part]:
        row = PeerRatios(part=part, measure=measure, peer=peer)
        if rates.get(peer):
            row.add(rates["tamias"] / rates[peer], rates["tamias"], rates[peer])
            row.version, row.terms, row.command = said[peer]
        else:
            row.absent = absent[peer]
        rows.append(row)
    return rows


def _frontier(options: ReportOptions, durable: bool, out: Out) -> list[PeerRatios]:
    from benchmarks.frontier.grpc.experiment import DURABLE, UNSYNCED, measure

    jar = options.jar
    terms = "nothing acknowledged before it is on our disk" if durable else "no syncs on either side"
    title = f"{options.urls:,} URLs over gRPC in {FRONTIER_QUEUES:,} queues, {terms}; URLs per second"
    rows = [PeerRatios(part="frontier", measure=title, peer=peer) for peer in PEERS["frontier"]]
    if jar is None or shutil.which("java") is None:
        absent = "no jar was named (--reference)" if jar is None else "there is no java"
        return [msgspec.structs.replace(row, absent=absent) for row in rows]
    measured = measure(options.urls, FRONTIER_QUEUES, jar, () if durable else NO_SYNC, out)
    for row, (figures, said) in zip(rows, frontier_ratios(measured), strict=True):
        row.version, row.terms, row.command = jar.stem, said, f"java -jar {jar.name}"
        row.add(*figures)
        row.target = DURABLE if durable else UNSYNCED
    rows[-1].target = 1.0
    if durable:
        rows[PHASES.index(SERIAL)].target = None  # it is to reach a part of the disk's syncs instead
    return rows


def frontier_ratios(run: Run) -> Iterator[tuple[tuple[float, float, float], str]]:
    """Of each phase, then of memory: the ratio and both figures in one run, and what to know about it."""
    ours, theirs = run.phases.values()
    for own, other in zip(ours, theirs, strict=True):
        cpu = f"CPU of a URL {own.cpu:.0f} and {other.cpu:.0f} µs"
        sync = f"; {own.per_second / run.syncs:.2f} of the syncs of the disk" if own.name == SERIAL else ""
        yield (own.per_second / other.per_second, own.per_second, other.per_second), cpu + sync
    own_memory, other_memory = (size / (1 << 20) for size in run.memory.values())
    yield (
        (other_memory / own_memory, own_memory, other_memory),
        "MiB of all processes of the server at the end",
    )


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
        asked, command = STORED[peer]
        row = PeerRatios(part="versions", measure=measure, peer=peer, command=command)
        if peer in sizes:
            row.add(sizes[peer] / own, own, sizes[peer])
            row.version = first_line(asked) if shutil.which(asked[0]) else ""
        row.absent = "" if peer in sizes else "it is not installed"
        rows.append(row)
    rows[0].target = GIT_TARGET
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
        "that of the whole process tree, for Tamias with its database. Figures of both are medians too; "
        "what the last column says is of the first run."
    )
    for measure in dict.fromkeys(row.measure for row in rows):
        those = [row for row in rows if row.measure == measure]
        yield ""
        yield f"## {measure[:1].upper()}{measure[1:]}"
        yield ""
        yield "| peer | ratio | least | greatest | target | Tamias | peer's | version | terms |"
        yield "|---|---|---|---|---|---|---|---|---|"
        yield from map(_line, those)
        if commands := dict.fromkeys(row.command for row in those if row.ratios and row.command):
            yield from ("", "```sh", *commands, "```")
    yield from _behind([row for row in rows if row.ratios and row.middle < 1])


def _behind(rows: Sequence[PeerRatios]) -> Iterator[str]:
    yield from ("", "## Where others are ahead", "")
    said: dict[str, list[str]] = {}
    for row in rows:
        reason = REASONS.get(row.peer) or REASONS.get(row.part, "for no reason that we know")
        said.setdefault(reason, []).append(f"{row.peer} ({row.measure.split(', ')[0]}: {row.middle:.2f})")
    for reason, peers in said.items():
        yield f"- **{', '.join(peers)}**: {reason}."
    if not rows:
        yield "Nowhere in this run."


def _line(row: PeerRatios) -> str:
    if not row.ratios:
        return f"| {row.peer} | | | | | | | | did not run: {row.absent} |"
    spread = f"{row.middle:.2f} | {min(row.ratios):.2f} | {max(row.ratios):.2f}"
    judged = ""
    if row.target is not None:
        judged = f" {row.target:g}: {'met' if row.middle >= row.target else 'missed'}"
    figures = f"{median(row.own):,.0f} | {median(row.theirs):,.0f}"
    return f"| {row.peer} | {spread} |{judged} | {figures} | {row.version} | {row.terms} |"
