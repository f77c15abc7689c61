"""Histories that are kept between requests: good as long as nobody notes a change, and no longer."""

import asyncio
import shutil
import time

import pytest

from tamias.features.service.queries import history as history_cache
from tamias.features.service.queries.history import Histories
from tamias.features.service.queries.thread_pool import SessionPool
from tamias.settings import Settings

from .conftest import DAY, START, Filled

URL = "http://kept.example/a.csv"
PATIENCE = 30


@pytest.fixture(scope="module")
def archive(made_once, tmp_path_factory):
    """An archive of one resource."""
    data = tmp_path_factory.mktemp("kept") / "data"
    shutil.copytree(made_once, data)
    filled = Filled(data)
    filled.put(URL, b"a\n1\n")
    yield filled
    filled.close()


def asking(archive, work):
    """Runs the work with histories of the archive."""

    async def run():
        pool = SessionPool(archive.database, archive.data, Settings())
        try:
            await work(Histories(pool, frozenset()))
        finally:
            pool.close()

    asyncio.run(run())


def leave_notes(archive):
    archive.run(
        "INSERT INTO catalogue (sink, service, seen) VALUES (1, 'http://x/', pg_current_xact_id())"
        " ON CONFLICT DO NOTHING"
    )


async def trusted(histories):
    """Asks until it is certain that everybody leaves notes."""
    deadline = time.monotonic() + PATIENCE
    while histories.cache.turn is None:
        assert time.monotonic() < deadline
        await histories.find(URL)
        await asyncio.sleep(0.05)
    return await histories.find(URL)


def test_a_history_that_is_asked_for_again_is_the_same_one(archive):
    leave_notes(archive)

    async def work(histories):
        first = await trusted(histories)
        assert await histories.find(URL) is first

    asking(archive, work)


def test_where_no_notes_are_left_every_history_is_read_anew(archive, monkeypatch):
    archive.run("DELETE FROM catalogue")
    monkeypatch.setattr(history_cache, "UNCERTAIN_SECONDS", 0.0)

    async def work(histories):
        for _ in range(5):
            first = await histories.find(URL)
            await asyncio.sleep(0.01)
        assert await histories.find(URL) is not first

    asking(archive, work)


def test_a_new_version_shows_although_the_history_was_kept(archive):
    leave_notes(archive)

    async def work(histories):
        before = len((await trusted(histories)).versions)
        archive.put(URL, b"a\n2\n", start=START + DAY)
        await asyncio.sleep(2 * history_cache.FRESH_SECONDS)
        assert len((await histories.find(URL)).versions) == before + 1

    asking(archive, work)


def test_a_change_that_is_committed_long_after_it_was_noted_shows(archive):
    """Its transaction is older than the last look at the notes."""
    leave_notes(archive)

    async def work(histories):
        await trusted(histories)
        with archive.database._connection() as slow, slow.transaction():
            slow.execute("UPDATE resource SET title = 'Renamed'")
            await asyncio.sleep(2 * history_cache.FRESH_SECONDS)
            await histories.find(URL)
        await asyncio.sleep(2 * history_cache.FRESH_SECONDS)
        assert (await histories.find(URL)).resource.title == "Renamed"

    asking(archive, work)


def test_a_history_that_was_read_before_the_last_look_is_not_kept(archive):
    leave_notes(archive)

    async def work(histories):
        found = await trusted(histories)
        histories.cache.forget_all()
        histories.cache.put(found, histories.cache.turn - 1)
        assert await histories.cache.find(found.resource.id) is None

    asking(archive, work)


def test_histories_that_were_not_used_for_longest_make_room(archive, monkeypatch):
    monkeypatch.setattr(history_cache, "MOST_VERSIONS", 20)
    leave_notes(archive)
    urls = [f"http://kept.example/{number}.csv" for number in range(20)]
    for url in urls:
        archive.put(url, b"a\n1\n")

    async def work(histories):
        await trusted(histories)
        first = await histories.find(urls[0])
        for url in urls:
            await histories.find(url)
        assert await histories.cache.find(first.resource.id) is None
        assert await histories.cache.find((await histories.find(urls[-1])).resource.id) is not None

    asking(archive, work)
