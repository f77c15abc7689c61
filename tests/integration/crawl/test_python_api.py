"""`tamias.crawl`, `tamias.Archive` and `tamias.aio`: what the commands do, done from Python."""

import asyncio
import json
import threading
from contextlib import closing

import pytest

import tamias as library
from tamias import aio, errors
from tamias.cli.crawl import SETTINGS
from tamias.crawl.verbs.crawl import _TABLES, CrawlKeywords
from tests.ports import free_port

OPEN = {"allow_private": True, "delay": 0.0, "robots": False, "scope": "host"}
LAST = 11


@pytest.fixture
def linked(site):
    """Twelve documents with a number each; the first links to the others."""
    links = " ".join(f"<> <#to> <{site.url(f'/{each}')}> ." for each in range(1, LAST + 1))
    site.pages["/0"] = f"<> <#number> 0 . {links}".encode()
    site.pages |= {f"/{each}": f"<> <#number> {each} .".encode() for each in range(1, LAST + 1)}
    return site


@pytest.fixture
def gated(linked, reply):
    """The same, where one document waits for `open`."""
    linked.open, linked.waits = threading.Event(), threading.Event()
    body = linked.pages["/7"]

    def wait_and_answer(handler):
        linked.waits.set()
        linked.open.wait(60)
        reply(200, body, Content_Type="text/turtle")(handler)

    linked.pages["/7"] = wait_and_answer
    return linked


def numbers(tamias):
    """The numbers of the documents that are stored."""
    return sorted(int(line.split('"')[1]) for line in tamias.quads() if "#number>" in line)


def test_the_options_are_those_of_the_command():
    assert {f"{_TABLES.get(name, 'crawl')}.{name}" for name in CrawlKeywords.__annotations__} == set(SETTINGS)


def test_a_crawl_is_a_call_and_another_one_resumes(tamias, linked):
    end = library.crawl(linked.url("/0"), data=tamias.data, depth=1, max_urls=4, **OPEN)
    assert (end.visited, end.ended.value, end.open) == (4, "limit", 8)
    end = library.crawl(data=tamias.data)
    assert (end.visited, end.ended.value, end.outcomes) == (8, "done", {"ok": 8})
    assert numbers(tamias) == list(range(LAST + 1))


def test_a_crawl_of_a_script_is_one_of_the_command(tamias, linked):
    library.crawl(linked.url("/0"), data=tamias.data, depth=0, **OPEN)
    done = tamias.crawl("--depth", "1")
    assert (done.returncode, "crawl.depth 0 → 1" in done.stderr) == (0, True), done.stderr
    assert numbers(tamias) == list(range(LAST + 1))


def test_what_is_no_seed_is_refused_before_anything_is_made(tmp_path):
    with pytest.raises(errors.UrlError, match="scheme"):
        library.crawl("example.org", data=tmp_path / "data")
    with pytest.raises(errors.ConfigError, match="whole number"):
        library.crawl("http://example.org/", data=tmp_path / "data", depth="deep")
    with pytest.raises(errors.UsageError, match=r"'dept'.*'depth'"):
        library.crawl("http://example.org/", data=tmp_path / "data", dept=1)
    with pytest.raises(errors.UsageError, match="nothing to crawl"):
        library.crawl(data=tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_events_left_early_stop_the_crawl_and_the_next_call_resumes(tamias, gated):
    with library.start_crawl(gated.url("/0"), data=tamias.data, depth=1, **OPEN) as running:
        for now in running:
            if now.visited:
                break
    gated.open.set()
    assert tamias.workers() == []
    assert running.wait().ended.value == "interrupted"
    assert library.crawl(data=tamias.data).ended.value == "done"
    assert (numbers(tamias), gated.asked("/0")) == (list(range(LAST + 1)), 1)


def test_a_crawl_that_is_stopped_before_it_began_loses_no_seed(tamias, linked):
    with library.start_crawl(linked.url("/0"), data=tamias.data, depth=1, **OPEN) as running:
        running.stop()
    assert linked.log == []
    assert library.crawl(data=tamias.data).outcomes == {"ok": LAST + 1}


def test_an_async_crawl_that_is_cancelled_loses_nothing(tamias, gated):
    async def cancelled():
        crawling = asyncio.create_task(aio.crawl(gated.url("/0"), data=tamias.data, depth=1, **OPEN))
        await asyncio.to_thread(gated.waits.wait)
        crawling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await crawling

    asyncio.run(cancelled())
    assert tamias.workers() == []
    gated.open.set()
    assert asyncio.run(aio.crawl(data=tamias.data)).ended.value == "done"
    assert (numbers(tamias), gated.asked("/0")) == (list(range(LAST + 1)), 1)


def test_two_crawls_of_one_program_do_not_meet(tamias_at, linked):
    places = [tamias_at(name) for name in ("one", "two")]

    async def both():
        crawls = (aio.crawl(linked.url("/0"), data=each.data, depth=1, **OPEN) for each in places)
        return await asyncio.gather(*crawls)

    assert [end.visited for end in asyncio.run(both())] == [LAST + 1] * 2
    assert [numbers(each) for each in places] == [list(range(LAST + 1))] * 2


def test_what_is_watched_is_visited_compared_and_followed(tamias, site, reply):
    url, other = site.url("/a.csv"), site.url("/b.csv")
    site.pages["/a.csv"] = reply(200, b"id,name\n1,one\n", Content_Type="text/csv")
    with closing(library.Archive(tamias.data, create=True)) as archive:
        added = archive.add(url, title="A table", every="12h")
        assert (added.new, added.known, added.refused) == (1, 0, [])
        news = archive.watch(url)
        assert archive.visit(allow_private=True, delay=0.0).outcomes == {"ok": 1}
        site.pages["/a.csv"] = reply(200, b"id,name\n1,one\n2,two\n", Content_Type="text/csv")
        assert archive.visit(url, allow_private=True, delay=0.0).outcomes == {"ok": 1}
        seen = [next(news), next(news)]
        assert [(each.kind, each.url, each.number) for each in seen] == [
            ("version", url, 1), ("version", url, 2),
        ]  # fmt: skip
        again = archive.watch(after=seen[0].id)
        assert next(again) == seen[1]
        assert archive.diff(url, key="id").added == 1
        with pytest.raises(errors.NotArchived, match=r"/b\.csv"):
            archive.remove(url, other)
        assert archive.resource(url).state == "stopped"
        with pytest.raises(errors.UsageError, match="not watched"):
            archive.visit(other)
    listed = json.loads(tamias.run("list", "--json").stdout)
    assert [(each["url"], each["every"], each["versions"]) for each in listed] == [(url, "12h", 2)]
    noted = [json.loads(line) for line in (tamias.data / "log" / "audit.jsonl").read_text().splitlines()]
    assert [each["what"] for each in noted] == ["add", "remove"]


def test_an_archive_is_awaited(tamias, site, reply):
    url = site.url("/a.csv")
    site.pages["/a.csv"] = reply(200, b"id,name\n1,one\n", Content_Type="text/csv")

    async def use():
        async with aio.AsyncArchive(tamias.data, create=True) as archive:
            await archive.add(url)
            news = aiter(archive.watch(url, after=0))
            await archive.visit(allow_private=True)
            event = await anext(news)
            listed = [each.url async for each in archive.resources()]
            body = await archive.run(lambda it: it.get(url).bytes())
            return event.number, listed, body, len(await archive.versions(url))

    assert asyncio.run(use()) == (1, [url], b"id,name\n1,one\n", 1)


def test_a_script_crawls_beside_a_service_on_the_same_data(tamias, linked):
    serving = tamias.start("serve", "--port", str(free_port()), "--allow-private")
    try:
        tamias.wait_until((tamias.data / "secret").exists)
        end = library.crawl(linked.url("/0"), data=tamias.data, depth=1, **OPEN)
        assert (end.visited, end.outcomes) == (LAST + 1, {"ok": LAST + 1})
        assert serving.poll() is None
    finally:
        serving.terminate()
        serving.communicate()
    assert numbers(tamias) == list(range(LAST + 1))
    assert all(linked.asked(f"/{each}") == 1 for each in range(LAST + 1))
