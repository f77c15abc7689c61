"""Compares a list with what was crawled, set by set in the database. Values out, nothing written."""

import csv
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

from tamias.content.outside_lines import outside_texts
from tamias.crawl.plan.admit import queue_key
from tamias.database.connect import Cursor, Session, read_buckets
from tamias.database.sql import statements
from tamias.frontier.keys import bucket_of, hash64, host_hash
from tamias.model.capture import Outcome
from tamias.model.errors import UrlError, UsageError
from tamias.model.url import fetch_url, host_key, url_key
from tamias.settings import Settings

LONGEST_LINE = 65_536
MOST_BYTES = 16 << 30
URL_COLUMNS = ("url", "uri", "address")
COUNT_COLUMNS = ("count", "frequency", "freq", "n", "times", "weight")


class Listed(msgspec.Struct, frozen=True):
    """A line of a list."""

    url: str
    count: float = 1.0


Header = tuple[str, int, int | None]
"""The dialect of a CSV file, and the columns of URL and count."""


def listed_urls(path: Path) -> Iterator[Listed | None]:
    """The lines of a list; None for one that is neither URL nor comment. Raises `UsageError`."""
    header: Header | None = None
    try:
        for number, line in enumerate(outside_texts(path, LONGEST_LINE, MOST_BYTES)):
            if line is None:
                yield None
            elif number == 0 and (header := _header(line)) is not None:
                continue
            elif line.strip() and not line.startswith("#"):
                yield _read(line, header)
    except ValueError as error:
        raise UsageError(f"cannot read the list {path}: {error}") from error


def _header(line: str) -> Header | None:
    """The header of a CSV file; None where the first line is none.

    >>> _header("Frequency;URL")
    (';', 1, 0)
    """
    for delimiter in (",", "\t", ";"):
        names = [name.strip().lower() for name in next(csv.reader([line], delimiter=delimiter), [])]
        url = next((names.index(name) for name in URL_COLUMNS if name in names), None)
        if url is not None:
            return delimiter, url, next((names.index(name) for name in COUNT_COLUMNS if name in names), None)
    return None


def _read(line: str, header: Header | None) -> Listed | None:
    try:
        if header is None:
            address, _, count = line.strip().partition("\t")
        else:
            cells = next(csv.reader([line], delimiter=header[0]))
            address, count = cells[header[1]], "" if header[2] is None else cells[header[2]] or "none"
        times = float(count or "1")
        if not (math.isfinite(times) and times > 0):
            return None
        return Listed(fetch_url(address.strip()), times)
    except (ValueError, IndexError, csv.Error, UrlError):
        return None


_SQL = statements("tamias.features.coverage", "coverage.sql")
VISITED = (Outcome.OK, Outcome.UNCHANGED)
KNOWN = tuple(Outcome)
_PAGE = 10_000
_FIRST_CAPTURE = UUID(int=0)


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """The share reached with at most so many links from a seed, from 0 to 1."""

    depth: int
    crawled: int
    """Reached, of the list or not."""
    covered: int
    """Of the list."""
    share: float
    top_share: float
    """Of the URLs on top of the list."""
    weighted_share: float
    """By how often they were seen."""


class Frequency(msgspec.Struct, frozen=True, kw_only=True):
    """URLs that were seen at least so often, and less than twice as often."""

    least: float
    listed: int
    covered: int
    share: float


class CoverageReport(msgspec.Struct, frozen=True, kw_only=True):
    """The share of a list that a crawl has reached."""

    urls: int
    """Of the list, each once."""
    domains: int
    wrong: int
    """Lines that are not URLs."""
    top: int
    by_url: tuple[Step, ...]
    by_domain: tuple[Step, ...]
    by_frequency: tuple[Frequency, ...]


class _Scope(msgspec.Struct, frozen=True):
    """The URLs of the frontier that count as reached."""

    buckets: int
    crawls: list[int]
    outcomes: list[int]

    def values_of(self, bucket: int) -> dict[str, Any]:
        """The parameters for one bucket."""
        return {"bucket": bucket, "crawl": self.crawls, "status": self.outcomes}


def measure(
    session: Session,
    settings: Settings,
    path: Path,
    *,
    top: int = 100,
    known: bool = False,
    crawl: str | None = None,
) -> CoverageReport:
    """The shares covered, by depth. `known` counts what the crawl has met; otherwise only what it has got.

    Raises `UsageError` for a list that cannot be read, or a crawl that is not there.
    """
    outcomes = [int(each) for each in (KNOWN if known else VISITED)]

    def compare(cursor: Cursor) -> CoverageReport:
        scope = _Scope(read_buckets(cursor), _crawls(cursor, crawl), outcomes)
        wrong = _load(cursor, settings, scope.buckets, path)
        _name_domains(cursor, scope.buckets, settings.frontier.queue == "domain")
        _load_effective(cursor, _Keys(settings, scope.buckets), scope)
        return _report(cursor, scope, top, wrong)

    return session.transact(compare)


def _crawls(cursor: Cursor, name: str | None) -> list[int]:
    named = {row[1]: int(row[0]) for row in cursor.execute("SELECT crawl, name FROM crawl").fetchall()}
    if name is None:
        return sorted(named.values())
    if name not in named:
        raise UsageError(f"there is no crawl {name!r}; there are: {', '.join(sorted(named))}")
    return [named[name]]


def _load(cursor: Cursor, settings: Settings, buckets: int, path: Path) -> int:
    """The list into the database; returns how many lines were no URL."""
    wrong = 0
    keys = _Keys(settings, buckets)
    cursor.execute(_SQL["make_lines"].text)
    with cursor.copy(_SQL["copy_lines"].text) as copy:
        copy.set_types(["int2", "int8", "int8", "int8", "float8"])
        for listed in listed_urls(path):
            if listed is None:
                wrong += 1
            else:
                copy.write_row((*keys.place(listed.url), listed.count))
    cursor.execute(_SQL["merge_lines"].text)
    return wrong


def _load_effective(cursor: Cursor, keys: "_Keys", scope: "_Scope") -> None:
    """The URLs that redirects led to, into the database: they were reached without being requested."""
    cursor.execute(_SQL["make_effective"].text)
    visited = [int(each) for each in VISITED]
    for bucket in range(scope.buckets):
        values = {**scope.values_of(bucket), "visited": visited, "most": _PAGE, "after": _FIRST_CAPTURE}
        while rows := cursor.execute(_SQL["redirected"].text, values).fetchall():
            with cursor.copy(_SQL["copy_effective"].text) as copy:
                copy.set_types(["int2", "int8", "int8", "int8", "int2"])
                for _, url, depth in rows:
                    copy.write_row((*keys.place(url), depth))
            values["after"] = rows[-1][0]
    cursor.execute(_SQL["analyse"].text)


class _Keys:
    """The numbers by which the frontier knows a URL."""

    def __init__(self, settings: Settings, buckets: int) -> None:
        self._queue_key = queue_key(settings)
        self._session_names = frozenset(settings.filters.session_names)
        self._buckets = buckets

    def place(self, url: str) -> tuple[int, int, int, int]:
        """Bucket, queue, URL, domain."""
        qid = host_hash(self._queue_key(url))
        uid = hash64(url_key(url, self._session_names))
        return bucket_of(qid, self._buckets), qid, uid, host_hash(host_key(url))


def _name_domains(cursor: Cursor, buckets: int, by_domain: bool) -> None:
    """The domain of every host; where queues are domains, that is the queue itself."""
    for name in ("make_reached", "make_reached_domain", "make_named"):
        cursor.execute(_SQL[name].text)
    for bucket in range(buckets):
        hosts = cursor.execute(_SQL["hosts"].text, {"bucket": bucket}).fetchall()
        with cursor.copy(_SQL["copy_named"].text) as copy:
            copy.set_types(["int2", "int8", "int8"])
            for qid, key in hosts:
                url = f"http://[{key}]/" if ":" in key else f"http://{key}/"
                copy.write_row((bucket, qid, qid if by_domain else host_hash(host_key(url))))


def _report(cursor: Cursor, scope: _Scope, top: int, wrong: int) -> CoverageReport:
    crawled: dict[int, int] = {}
    for bucket in range(scope.buckets):
        cursor.execute(_SQL["reach_urls"].text, scope.values_of(bucket))
        cursor.execute(_SQL["reach_domains"].text, scope.values_of(bucket))
        for depth, count in _all(cursor, "crawled_urls", scope.values_of(bucket)):
            crawled[depth] = crawled.get(depth, 0) + count
    cursor.execute(_SQL["reach_effective_domains"].text)
    cursor.execute(_SQL["analyse_reached"].text)
    on_top = {"top": top}
    ((urls, top_urls, weight, domains, top_domains),) = _all(cursor, "listed_totals", on_top)
    reached_domains = dict(_all(cursor, "crawled_domains", {}))
    return CoverageReport(
        urls=urls,
        domains=domains,
        wrong=wrong,
        top=top,
        by_url=tuple(_steps(crawled, _all(cursor, "covered_urls", on_top), (urls, top_urls, weight))),
        by_domain=tuple(
            _steps(reached_domains, _all(cursor, "covered_domains", on_top), (domains, top_domains, weight))
        ),
        by_frequency=tuple(
            Frequency(least=least, listed=listed, covered=covered, share=_part(covered, listed))
            for least, listed, covered in _all(cursor, "by_frequency", {})
        ),
    )


def _steps(
    crawled: Mapping[int, int], rows: Iterable[tuple[Any, ...]], totals: tuple[int, int, float]
) -> Iterator[Step]:
    """Depth by depth, each with all that was reached before."""
    covered = {depth: (count, on_top, weight) for depth, count, on_top, weight in rows}
    reached = count = on_top = 0
    weight = 0.0
    for depth in range(max(crawled, default=-1) + 1):
        reached += crawled.get(depth, 0)
        more = covered.get(depth, (0, 0, 0.0))
        count, on_top, weight = count + more[0], on_top + more[1], weight + more[2]
        yield Step(
            depth=depth,
            crawled=reached,
            covered=count,
            share=_part(count, totals[0]),
            top_share=_part(on_top, totals[1]),
            weighted_share=_part(weight, totals[2]),
        )


def _part(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _all(cursor: Cursor, name: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
    return cursor.execute(_SQL[name].text, parameters).fetchall()
