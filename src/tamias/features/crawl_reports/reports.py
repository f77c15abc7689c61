"""`crawl.log` and reports on seeds, hosts, media types and response codes, in the columns of Heritrix 3.

Captures are read once, oldest first. Those of imports are left out: other crawlers made them.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TextIO

import msgspec

from tamias.archive.captures import all_captures, count_buckets
from tamias.archive.moments import digits, rfc3339
from tamias.cli.console.options import CommonOptions, session_at
from tamias.database.sql import statements
from tamias.model.capture import CaptureRecord, Outcome
from tamias.model.errors import UsageError
from tamias.model.url import host

MOST_SEEDS = 1_000_000
_SQL = statements("tamias.features.crawl_reports", "reports.sql")
_BY_ROBOTS, _UNREACHED, _OUT_OF_SCOPE = -9998, -2, -5000
"""How Heritrix counts attempts without a response."""


def write_reports(
    place: CommonOptions, urls: tuple[str, ...], _withheld: tuple[str, ...], output: Path | None
) -> None:
    """Write the reports of all crawls to a new folder. Raises `UsageError`."""
    if output is None or output.exists():
        raise UsageError("heritrix writes several files: name a folder that does not exist yet with -o")
    if urls:
        raise UsageError("heritrix reports on all URLs; leave out --url")
    output.mkdir(parents=True)
    reports = CrawlReports()
    with session_at(place) as session:
        with (output / "crawl.log").open("w", encoding="utf-8") as log:
            for record in all_captures(session):
                if record.worker != "import":
                    reports.add(record, log)
        remaining: Counter[str] = Counter()
        for bucket in range(count_buckets(session)):
            remaining.update(dict(session.fetch_all(_SQL["remaining"], {"bucket": bucket})))
    reports.write(output, remaining)


class CrawlReports:
    """The counts of reports."""

    def __init__(self) -> None:
        self._types: Counter[str] = Counter()
        self._type_bytes: Counter[str] = Counter()
        self._codes: Counter[int] = Counter()
        self._hosts: Counter[str] = Counter()
        self._host_bytes: Counter[str] = Counter()
        self._robots: Counter[str] = Counter()
        self._seeds: dict[str, tuple[int, str]] = {}

    def add(self, record: CaptureRecord, log: TextIO) -> None:
        """Count an attempt, and write its line of the log; each redirect that was followed has its own."""
        code, before = status_code(record), record.hops[:-1]
        for number, hop in enumerate(before):
            moved = msgspec.structs.replace(
                record, final_url=hop.url, bytes=None, found_type=None, sha256=None
            )
            self._count(moved, hop.status)
            log.write(log_line(moved, hop.status, number))
        self._count(record, code)
        log.write(log_line(record, code, len(before)))
        if record.depth == 0 and (record.url in self._seeds or len(self._seeds) < MOST_SEEDS):
            self._seeds[record.url] = code, "" if record.url == record.final_url else record.final_url

    def _count(self, record: CaptureRecord, code: int) -> None:
        name, size, kind = host(record.final_url), record.bytes or 0, record.found_type or "unknown"
        self._robots[name] += code == _BY_ROBOTS
        if code > 0:
            self._types[kind] += 1
            self._type_bytes[kind] += size
            self._codes[code] += 1
            self._hosts[name] += 1
            self._host_bytes[name] += size

    def write(self, folder: Path, remaining: Counter[str]) -> None:
        """Write the reports, the most frequent first."""
        names = dict.fromkeys([*(name for name, _ in self._hosts.most_common()), *self._robots, *remaining])
        seeds = ((code, "CRAWLED" if code > 0 else "NOTCRAWLED", *rest) for code, *rest in self._seed_rows())
        hosts = (
            (self._hosts[name], self._host_bytes[name], name, self._robots[name], remaining[name])
            for name in names
        )
        types = ((count, self._type_bytes[kind], kind) for kind, count in self._types.most_common())
        codes = ((count, code) for code, count in self._codes.most_common())
        for name, columns, rows in (
            ("seeds", ("code", "status", "seed", "redirect"), seeds),
            ("hosts", ("#urls", "#bytes", "host", "#robots", "#remaining"), hosts),
            ("mimetype", ("#urls", "#bytes", "mime-types"), types),
            ("responsecode", ("#urls", "rescode"), codes),
        ):
            _write(folder / f"{name}-report.txt", columns, rows)

    def _seed_rows(self) -> Iterable[tuple[int, str, str]]:
        return ((code, url, target) for url, (code, target) in self._seeds.items())


def status_code(record: CaptureRecord) -> int:
    """Return the status of the response, or a negative number that says why there is none."""
    if record.status is not None:
        return record.status
    if record.outcome is Outcome.FAILED:
        return _UNREACHED
    return _BY_ROBOTS if record.reason.startswith("robots.txt") else _OUT_OF_SCOPE


def log_line(record: CaptureRecord, code: int, redirects: int) -> str:
    """Return a line of `crawl.log`; its path has `L` for links and `R` for redirects, without a referrer."""
    begun = f"{digits(record.started_at)}{record.started_at % 1000:03d}"
    columns = (
        rfc3339(record.ended_at),
        f"{code:5}",
        f"{record.bytes if record.bytes is not None else '-':>10}",
        record.final_url,
        "L" * record.depth + "R" * redirects or "-",
        "-",
        record.found_type or "unknown",
        f"#{record.worker}",
        f"{begun}+{record.ended_at - record.started_at}" if code > 0 else "-",
        f"sha256:{record.sha256}" if record.sha256 else "-",
        "-",
        f"crawl:{record.crawl_name}" if record.crawl_name else "-",
    )
    return " ".join(columns) + "\n"


def _write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(" ".join(f"[{each}]" for each in columns) + "\n")
        file.writelines(" ".join(map(str, row)).rstrip() + "\n" for row in rows)
