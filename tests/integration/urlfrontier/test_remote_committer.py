"""The service's end of workers without a database, where things go wrong or need no visit."""

import asyncio
import io
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from tamias.archive.captures import all_captures
from tamias.archive.sources.sites import Covered
from tamias.crawl.analysis.extractor import Extraction
from tamias.crawl.commit.database_store import worker_number
from tamias.crawl.plan.admit import Admission
from tamias.crawl.worker.worker import Replaced
from tamias.features.remote_workers import committer as committer_module
from tamias.features.remote_workers import committer as lending_module
from tamias.features.remote_workers.committer import RemoteCommitter
from tamias.features.remote_workers.registry import WorkerRegistry
from tamias.features.remote_workers.store import Outdated, RemoteStore, _with_rules
from tamias.features.remote_workers.wire import DeliveredVisit, Greeting, Released, Renewed, WirePolicy
from tamias.frontier.lease_filter import LeaseFilter
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.capture import Capture, Outcome, new_capture_id
from tamias.model.errors import TamiasError, UsageError
from tamias.model.item import Item
from tamias.permit.traps import Pages, packed_alike, unpacked_alike
from tamias.settings import AnalyseSettings, FetchSettings, FiltersSettings, Settings
from tests.messages import saying, unsaid

URL = "http://a.example/page"
SETTINGS = Settings(fetch=FetchSettings(delay=0))


@pytest.fixture
def session(clean_database):
    with closing(clean_database.session()) as session:
        session.transact(lambda cursor: cursor.execute("TRUNCATE capture, current_document"))
        session.transact(lambda cursor: cursor.execute("UPDATE service SET active = true"))
        frontier = PostgresFrontier(session, same_url=str.__eq__, delay_ms=0)
        frontier.put([Item(url=URL, key=URL, host="a.example")])
        yield session


@pytest.fixture(scope="module")
def number(database):
    return worker_number(database)


@pytest.fixture
def serving(clean_database, session, number, tmp_path):
    """`serving(work)` runs a coroutine with a committer, under these settings."""

    def run(work, settings=SETTINGS, before=lambda committer: None):
        async def main():
            policy = WirePolicy(settings, (), (), "digest", 0)
            made = RemoteCommitter(
                clean_database, tmp_path, 1, policy, number=number, lease_filter=LeaseFilter()
            )
            before(made)
            await made.open()
            try:
                return await work(made)
            finally:
                await made.close()

        return asyncio.run(main())

    return run


def visit(lent):
    capture = Capture(url=lent.task.url, started_at=1, ended_at=2, outcome=Outcome.OK, reason="200 OK")
    return DeliveredVisit(
        lease=lent.lease, task=lent.task, capture=capture, found=Extraction(quads=1), references=[], items=[],
        put_off=False, is_context=False, context=None, delay_ms=0, blocked_until=None, granted=None,
    )  # fmt: skip


async def accepted(committer, quads=b"", name=None):
    (lent,) = await committer.lend(7, 10, 10, 30)
    name = name or str(new_capture_id(1))
    coming = await committer.accept(name, visit(lent), io.BytesIO(quads), again=False)
    return await asyncio.wait_for(coming, 20)


def test_what_nobody_may_ask_for_is_settled_without_being_lent(serving, session):
    settings = msgspec.structs.replace(SETTINGS, filters=FiltersSettings(exclude=("page",)))

    async def work(committer):
        return await committer.lend(7, 10, 10, 30)

    assert serving(work, settings) == []
    (record,) = all_captures(session)
    assert (record.url, record.outcome) == (URL, Outcome.REFUSED)


def test_nothing_is_lent_while_the_service_is_not_active(serving, session):
    session.transact(lambda cursor: cursor.execute("UPDATE service SET active = false"))
    assert serving(lambda committer: committer.lend(7, 10, 10, 30)) == []


def test_quads_that_are_damaged_on_the_way_are_a_failure_of_ours(serving, session):
    assert serving(lambda committer: accepted(committer, b"no zstd")) is True
    (record,) = all_captures(session)
    assert record.outcome is Outcome.FAILED
    assert record.reason.startswith("internal error: a document's quads cannot be unpacked")


def test_the_id_of_a_visit_is_a_uuid(serving):
    with pytest.raises(UsageError, match="is a UUID, not 'seven'"):
        serving(lambda committer: accepted(committer, name="seven"))


def test_a_visit_that_cannot_be_taken_is_told_to_who_delivered_it(serving, monkeypatch):
    async def no_room(_visit):
        raise TamiasError("no room")

    async def work(committer):
        monkeypatch.setattr(committer._store, "commit", no_room)
        await accepted(committer)

    with pytest.raises(TamiasError, match="no room"):
        serving(work)


def test_a_committer_that_is_broken_tells_all_who_wait(serving, caplog):
    async def fails(_after):
        await asyncio.sleep(0.5)
        raise TamiasError("no database")

    async def work(committer):
        (lent,) = await committer.lend(7, 10, 10, 30)
        visited = await committer.accept(str(new_capture_id(1)), visit(lent), io.BytesIO(), again=False)
        released = committer.released(Released(lent.lease, 0, None))
        committer.released(Released(lent.lease, 0, None)).cancel()
        told = await asyncio.gather(visited, released, return_exceptions=True)
        return committer.broken, [str(each) for each in told]

    def break_it(committer):
        committer._store.run = fails

    assert serving(work, before=break_it) == (True, ["no database", "no database"])
    assert not unsaid(caplog.text)


def test_leases_of_which_nothing_is_heard_are_forgotten_and_trouble_is_tried_again(
    serving, monkeypatch, caplog
):
    monkeypatch.setattr(committer_module, "MAINTAIN_SECONDS", 0.05)
    monkeypatch.setattr(committer_module, "FORGET_SECONDS", 0.01)

    async def fails():
        raise TamiasError("not now")

    async def work(committer):
        (lent,) = await committer.lend(7, 10, 10, 30)
        committer._holding(lent.lease)
        committer._store.maintain = fails
        for _ in range(200):
            await asyncio.sleep(0.05)
            if not committer._held:
                break
        return committer._held

    assert serving(work) == {}
    assert "recovered later: not now" in caplog.text


def test_a_visit_that_is_delivered_again_while_it_is_committed_has_one_answer_and_one_record(
    serving, session
):
    async def work(committer):
        (lent,) = await committer.lend(7, 10, 10, 30)
        name = str(new_capture_id(1))
        first = await committer.accept(name, visit(lent), io.BytesIO(), again=False)
        second = await committer.accept(name, visit(lent), io.BytesIO(), again=True)
        return first is second, await asyncio.wait_for(second, 20)

    assert serving(work) == (True, True)
    assert [record.url for record in all_captures(session)] == [URL]


def test_a_visit_whose_worker_hung_up_is_committed_all_the_same(serving, session):
    async def work(committer):
        (lent,) = await committer.lend(7, 10, 10, 30)
        coming = await committer.accept(str(new_capture_id(1)), visit(lent), io.BytesIO(), again=False)
        coming.cancel()
        return await asyncio.wait_for(committer.released(Released(lent.lease, 0, None)), 20)

    assert serving(work) is True
    assert [(record.url, record.outcome) for record in all_captures(session)] == [(URL, Outcome.OK)]


def test_what_a_worker_counted_of_pages_that_are_alike_is_counted_with_the_host(serving, session):
    alike = packed_alike({7: Pages(3, [1])})

    async def work(committer):
        (lent,) = await committer.lend(7, 10, 10, 30)
        await asyncio.wait_for(committer.released(Released(lent.lease, 0, None, alike=alike)), 20)
        (again,) = await committer.lend(7, 10, 10, 30)
        return unpacked_alike(again.lease.alike)

    assert serving(work) == {7: Pages(3, [1])}


@pytest.mark.parametrize("had", [True, False], ids=["had", "coming"])
def test_what_a_bulk_copy_covers_is_settled_without_being_lent(serving, session, monkeypatch, had):
    covered = Covered(1, "http://a.example/sitemap", had, (), frozenset(), frozenset(), b"", (), None)

    async def covering(_task, _lease):
        return covered

    async def work(committer):
        monkeypatch.setattr(committer._store.context.coverage, "of", covering)
        return await committer.lend(7, 10, 10, 30)

    assert serving(work) == []
    records = [(record.outcome, record.reason) for record in all_captures(session)]
    assert records == ([(Outcome.SKIPPED, covered.reason)] if had else [])


def test_a_document_over_which_a_worker_died_is_lent_with_that_note(serving):
    async def work(committer):
        (lent,) = await committer.lend(7, 10, 10, 30)
        place = (lent.lease.bucket, lent.lease.qid, lent.task.crawl, lent.task.uid)
        await committer.note_death(7, [place])
        (again,) = await committer.lend(8, 10, 10, 30)
        return lent.task.deaths, again.task.deaths

    assert serving(work) == (0, 1)


def test_more_workers_than_are_remembered_are_lent_to_and_deliver(serving, session, monkeypatch):
    monkeypatch.setattr(lending_module, "_MOST_WORKERS", 1)
    urls = [f"http://{name}.example/" for name in "bcd"]
    frontier = PostgresFrontier(session, same_url=str.__eq__, delay_ms=0)
    frontier.put([Item(url=url, key=url, host=url.split("/")[2]) for url in urls])

    async def work(committer):
        lent = [each for worker in (7, 8, 9, 10) for each in await committer.lend(worker, 1, 1, 30)]
        coming = [
            await committer.accept(str(new_capture_id(1)), visit(each), io.BytesIO(), again=False)
            for each in lent
        ]
        return sorted(each.task.url for each in lent), await asyncio.gather(*coming)

    assert serving(work) == (sorted([URL, *urls]), [True] * 4)


def test_scraping_rules_are_sent_with_the_policy(clean_database, session, number, tmp_path):
    rules = tmp_path / "rules"
    (rules / "shops").mkdir(parents=True)
    (rules / "shops" / "one.toml").write_text("one")
    (tmp_path / "two.toml").write_text("two")
    places = (str(rules), str(tmp_path / "two.toml"))
    settings = msgspec.structs.replace(SETTINGS, analyse=AnalyseSettings(rules=places))

    async def ask(question):
        return question(session)

    async def work():
        registry = WorkerRegistry(clean_database, tmp_path, settings, ask, LeaseFilter())
        registry._number = number
        try:
            return await registry.hello(1, Greeting(7))
        finally:
            await registry.close()

    assert asyncio.run(work()).rules == (("one.toml", "one"), ("two.toml", "two"))


def test_a_worker_of_another_release_is_refused(clean_database, tmp_path):
    registry = WorkerRegistry(clean_database, tmp_path, SETTINGS, None, LeaseFilter())
    with pytest.raises(UsageError, check=saying()):
        asyncio.run(registry.hello(1, Greeting(7, version=1)))


def test_scraping_rules_reach_the_worker_as_files(tmp_path):
    policy = WirePolicy(SETTINGS, (), (("shop.toml", "one"), ("shop.toml", "two")), "digest", 0)
    places = _with_rules(policy, tmp_path / "rules").analyse.rules
    assert [Path(place).read_text(encoding="utf-8") for place in places] == ["one", "two"]


@pytest.mark.parametrize("call", ["lease", "renew"])
def test_a_worker_whose_crawl_was_told_something_else_is_replaced(tmp_path, call):
    class Client:
        worker = 7

        def __getattr__(self, _name):
            return None

        async def lease(self, *_words):
            raise Outdated("told something else")

        async def renew(self, *_words):
            return Renewed([], "another")

    async def work():
        policy = WirePolicy(SETTINGS, (), (), "digest", 0)
        store = RemoteStore(Client(), policy, Admission(SETTINGS, ()), tmp_path)
        await (store.lease(1, 1, 1.0) if call == "lease" else store.renew([], 1.0))

    with pytest.raises(Replaced):
        asyncio.run(work())
