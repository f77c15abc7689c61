"""Progress of a crawl: live lines on a terminal, occasional lines elsewhere, JSON lines on request."""

import sys
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import click
import msgspec

from tamias.cli.console.options import CommonOptions, count_of, duration, printable, size

if TYPE_CHECKING:
    from tamias.crawl.store.progress import CrawlSnapshot

LINE_SECONDS = 5.0
MOST_SHOWN = 5


class Display:
    """Shows snapshots; cheap enough to forget about."""

    def __init__(self, place: CommonOptions) -> None:
        self._json = place.json
        self._quiet = place.verbosity < 0
        self._live = sys.stderr.isatty() and not place.json and not self._quiet
        self._drawn = 0
        self._shown_at = float("-inf")
        self._last: tuple[float, int] = (0.0, 0)
        self._paused: str | None = None

    def show(self, now: "CrawlSnapshot") -> None:
        """Draws, prints, or stays silent."""
        if self._live:
            self._draw(now)
            return
        if time.monotonic() - self._shown_at < LINE_SECONDS and now.paused == self._paused:
            return
        self._paused = now.paused
        self._shown_at = time.monotonic()
        if self._json:
            click.echo(msgspec.json.encode(now))
        elif not self._quiet:
            click.echo("  ".join(_figures(now, self._rate(now))), err=True)

    def _draw(self, now: "CrawlSnapshot") -> None:
        lines = _figures(now, self._rate(now))
        up = f"\x1b[{self._drawn}A" if self._drawn else ""
        sys.stderr.write(up + "".join(f"\r\x1b[2K{line}\n" for line in lines) + "\x1b[J")
        sys.stderr.flush()
        self._drawn = len(lines)

    def _rate(self, now: "CrawlSnapshot") -> float:
        seconds, visited = self._last
        self._last = (now.seconds, now.visited)
        return (now.visited - visited) / max(0.001, now.seconds - seconds)


def by_outcome(counts: Mapping[str, int]) -> str:
    """Return the number of URLs by outcome, those fetched first.

    >>> by_outcome({"gone": 2, "ok": 1630, "refused": 1})
    '1,630 ok, 2 gone, 1 refused'
    """
    ways = sorted(counts.items(), key=lambda way: (way[0] != "ok", way[0]))
    return ", ".join(f"{count:,} {word}" for word, count in ways)


def summary(end: "CrawlSnapshot", place: CommonOptions, *words: str) -> Iterator[str]:
    """Yield the lines that are printed at the end of a crawl; `words` are what names it in a command."""
    from tamias.crawl.store.progress import Ended

    again = place.command("crawl", *words)
    repeats = f", {count_of(end.put_off, 'attempt')} failed and will be repeated" if end.put_off else ""
    repeats += f", {end.again:,} fetched again (a shorter path was found)" if end.again else ""
    repeats += f", {end.revisited:,} of them visited before" if end.revisited else ""
    ways = f": {by_outcome(end.outcomes)}" if end.outcomes else ""
    quads = count_of(end.quads, "quad")
    yield f"{count_of(end.visited, 'URL')} visited in {end.seconds:.1f} s{ways}{repeats}; {quads}"
    yield from _reasons(end)
    if end.unread:
        yield _unread(end.unread)
    for sitemap, (known, met) in list(end.shares.items())[:MOST_SHOWN]:
        others = "" if known == met else "; the others were requested one by one"
        yield printable(f"  the dump of {sitemap} describes {known:,} of {met:,} linked resources{others}")
    if end.ended is Ended.DONE:
        yield _trapped(end, again) if end.trapped[1] else _afterwards(end, place)
    else:
        yield from _unfinished(end, place, *words)


def _unfinished(end: "CrawlSnapshot", place: CommonOptions, *words: str) -> Iterator[str]:
    """Yield why a crawl ended with URLs left, and the command that continues it."""
    from tamias.crawl.store.progress import Ended
    from tamias.frontier.due import LONGEST_WAIT_MS

    why = {
        Ended.LIMIT: "stopped by a limit you set",
        Ended.WAITING: f"the next host can be visited in {duration(end.next_in)}, more than --max-wait"
        if end.next_in and end.open
        else "a sink was away for longer than --max-wait",
        Ended.PAUSED: "the crawl is paused",
        Ended.INTERRUPTED: "interrupted",
    }
    assert end.ended is not None
    yield from _unreached(end)
    left = f"{count_of(end.open, 'URL')} {'is' if end.open == 1 else 'are'} left"
    if not end.open:
        left = "all URLs are visited"
    unless = ", unless its limit is reached ('tamias crawls' shows it)" if end.ended is Ended.PAUSED else ""
    yield f"{why[end.ended]}; {left}; '{place.command('crawl', *words)}' continues{unless}"
    if end.ended is Ended.WAITING and 1000 * (end.next_in or 0) > LONGEST_WAIT_MS:
        yield f"no host waits so long: a clock was wrong; '{place.command('doctor', '--repair')}' mends it"


def _unread(counts: Mapping[str, int]) -> str:
    types = ", ".join(f"{n:,} {name}" for name, n in list(counts.items())[:MOST_SHOWN])
    more = ", and others" if len(counts) > MOST_SHOWN else ""
    return printable(f"  {count_of(sum(counts.values()), 'document')} had no reader: {types}{more}")


def _reasons(end: "CrawlSnapshot") -> Iterator[str]:
    """The most frequent reasons of refusals, failures and skips, with an example each and what to do."""
    for each in end.reasons[:MOST_SHOWN]:
        advice = f"; {each.advice}" if each.advice else ""
        yield printable(f"  {each.count:,} {each.outcome}: {each.kind}, e.g. {each.example}{advice}")
    if others := end.reasons[MOST_SHOWN:]:
        yield f"  {sum(each.count for each in others):,} for other reasons (--json lists them all)"


def _unreached(end: "CrawlSnapshot") -> Iterator[str]:
    """Hosts that are tried again in a later run."""
    if end.deferred:
        yield f"{count_of(len(end.deferred), 'host')} could not be reached; the next run tries again:"
        yield from (printable(f"  {each}") for each in end.deferred[:MOST_SHOWN])
        if others := len(end.deferred[MOST_SHOWN:]):
            yield f"  and {others:,} more"


def _trapped(end: "CrawlSnapshot", again: str) -> str:
    """Return the message about queues that were stopped as traps."""
    queues, urls = end.trapped
    limits = ("HOST_VISITS=1000000000", "HOST_BUDGET=0", "MONOTONY=0")
    command = f"{' '.join(f'TAMIAS_PERMIT__{each}' for each in limits)} {again}"
    left = f"{count_of(urls, 'known URL')} there were not visited"
    return f"{count_of(queues, 'queue')} stopped as traps; {left}; '{command}' opens them"


def _afterwards(end: "CrawlSnapshot", place: CommonOptions) -> str:
    if end.next_in is not None:
        return f"nothing is due; the next visit is in {duration(end.next_in)}"
    if end.known and not end.visited:
        known = count_of(end.known, "known URL")
        return f"nothing is left to visit: earlier runs or a running service visited {known}"
    found = f"; '{place.command('export')}' writes what was found" if end.quads else ""
    return f"nothing is left to visit{found}"


def _figures(now: "CrawlSnapshot", rate: float) -> list[str]:
    bad = now.outcomes.get("failed", 0)
    return [
        f"done {now.visited:,}  ({rate:,.0f}/s, {now.quads:,} quads, {size(now.bytes)})",
        f"queued {now.open:,} of {now.known:,} known on {count_of(now.hosts, 'queue')}, "
        f"{now.in_flight} in flight",
        f"failed {bad:,}  refused {now.outcomes.get('refused', 0):,}  gone {now.outcomes.get('gone', 0):,}",
        f"time {int(now.seconds) // 60}:{int(now.seconds) % 60:02d}  workers {now.workers}",
        *([f"paused: {now.paused}"] if now.paused else []),
        *([printable(_waited_for(now))] if now.deferred else []),
    ]


def _waited_for(now: "CrawlSnapshot") -> str:
    more = f" and {len(now.deferred) - 1:,} more" if now.deferred[1:] else ""
    again = f", next try in {duration(max(1.0, now.next_in))}" if now.next_in is not None else ""
    return f"waiting for {now.deferred[0]}{more}{again}"
