"""A script as a user of the package writes it: every public name, and what each gives, under a type checker.

`assert_type` fails where a type is missing, for then it is `Any`.
"""

import asyncio
import pickle
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import UTC, datetime
from typing import BinaryIO, assert_type

from pyoxigraph import Quad, QueryBoolean, QuerySolutions, Triple

import tamias
from tamias import aio, errors, plugin

FEATURE = plugin.Feature(name="shout", about="tags pages that shout", module=__name__)


class Loud:
    """A tagger, as a plug-in has one."""

    def tags(self, page: plugin.Page) -> Iterable[str]:
        return ["loud"] if page.body.isupper() else []


TAGGER: plugin.Tagger = Loud()


def collect(seed: str) -> int:
    try:
        end: tamias.CrawlSnapshot = tamias.crawl(seed, data="archive", depth=1, scope="host", sinks=("warc",))
        with tamias.start_crawl(seed, name="second", delay=0.5, include=(r"\.ttl$",)) as running:
            assert_type(running, tamias.RunningCrawl)
            for now in running:
                if now.open > 1000:
                    running.stop()
            assert_type(running.wait(), tamias.CrawlSnapshot)
    except errors.DiskFull as error:
        return error.exit_code
    except errors.TamiasError as error:
        return int(error.retry_can_help)
    return end.visited


def keep_watch(archive: tamias.Archive, url: str) -> str | None:
    assert_type(archive.add(url, title="A", format="csv", every="1d", priority=2.0, portal=False).new, int)
    assert_type(archive.visit(url, allow_private=True), tamias.CrawlSnapshot)
    with archive.start_visit(url) as visiting:
        assert_type([now.quads for now in visiting], list[int])
    archive.remove(url)
    number, _ = archive.events(url, None, None)(None)
    for event in archive.watch(url, after=number):
        assert_type(event.number, int | None)
        return event.sha256
    return None


async def do_it_all_later(url: str) -> None:
    assert_type(await aio.read(b""), tamias.Reading)
    assert_type(await aio.crawl(url, depth=1), tamias.CrawlSnapshot)
    async with aio.start_crawl(url) as running:
        async for now in running:
            assert_type(now, tamias.CrawlSnapshot)
    async with aio.AsyncArchive("archive", create=True) as archive:
        assert_type((await archive.add(url, every="1d")).refused, list[tuple[str, str]])
        assert_type((await archive.resource(url)).title, str | None)
        assert_type(await archive.versions(url), list[tamias.ArchivedVersion])
        assert_type((await archive.get(url, version=1)).version.sha256, str)
        assert_type((await archive.diff(url, key="id")).added, int)
        assert_type(await archive.diff_update(url), str)
        assert_type((await archive.diff_portal(url, "2026-01-01", "2026-02-01")).gone, list[str])
        assert_type(len(await archive.history(url)), int)
        assert_type((await archive.graph_history(url)).times, list[datetime])
        assert_type(await archive.query("ASK {}"), QuerySolutions | QueryBoolean | Iterator[Triple])
        assert_type(archive.resources(host="a.example"), AsyncIterator[tamias.ArchivedResource])
        assert_type(await archive.run(lambda it: it.get(url).bytes()), bytes)
        assert_type(await archive.visit(url), tamias.CrawlSnapshot)
        await archive.remove(url)
        async for event in archive.watch(url, after=0):
            assert_type(event.id, int)


def read_something(source: bytes) -> list[str]:
    reading: tamias.Reading = tamias.read(source, base="http://a.example/", media_type="text/turtle")
    assert_type(reading.quads, Iterator[Quad])
    assert_type(reading.links, list[str])
    assert_type(reading.media_type, str | None)
    if reading.profile is not None:
        assert_type(reading.profile.tables[0].rows, int)
    assert_type([each.uri for each in reading.declared], list[str | None])
    return [f"{each.what}" for each in reading.problems]


def look_at(archive: tamias.Archive, url: str) -> None:
    for resource in archive.resources(host="a.example", media_type="text/csv", portal=None):
        assert_type(resource.added_at, datetime)
        assert_type(resource.next_visit, datetime | None)
    assert_type(archive.resource(url).title, str | None)
    assert_type(archive.versions(url)[0].captured_at, datetime)
    content = archive.get(url, at=datetime(2026, 1, 1, tzinfo=UTC), version=None)
    assert_type(content.bytes(), bytes)
    assert_type(content.text(), str)
    assert_type(content.open(), BinaryIO)
    assert_type(content.pieces(), Iterator[bytes])
    assert_type(content.version.sha256, str)
    assert_type(content.resource.url, str)
    assert_type(content.table().columns, list[str])
    assert_type(len(archive.history(url)), int)
    graph = archive.graph_history(url)
    assert_type(graph.at(graph.times[0]), list[Quad])
    assert_type(graph.changes("2026-01-01", "2026-02-01"), tuple[list[Quad], list[Quad]])


def compare(archive: tamias.Archive, url: str) -> int:
    change = archive.diff(url, 1, "2026-01-01", key="id")
    assert_type(archive.diff_update(url, 1, 2), str)
    assert_type(archive.diff_portal(url, datetime(2026, 1, 1, tzinfo=UTC), "2026-02-01").gone, list[str])
    assert_type([each.iri for each in archive.records(url)], list[str])
    return change.added + change.removed + change.changed


def ask(archive: tamias.Archive) -> None:
    answer = archive.query("SELECT * { ?s ?p ?o }", at=datetime(2026, 1, 1, tzinfo=UTC))
    assert_type(answer, QuerySolutions | QueryBoolean | Iterator[Triple])


with tamias.Archive("archive", data="archive") as opened:
    look_at(opened, "http://a.example/")
    assert_type(compare(opened, "http://a.example/"), int)
    ask(opened)
    again: tamias.Archive = pickle.loads(pickle.dumps(opened))
    again.close()
asyncio.run(do_it_all_later("http://a.example/"))
assert_type(tamias.__version__, str)
