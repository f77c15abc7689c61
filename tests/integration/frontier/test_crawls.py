"""Several crawls side by side in one frontier: in the tables, and as users steer them."""

import json
from contextlib import closing

import pytest

from tamias.database.connect import Database
from tamias.frontier import crawls
from tamias.frontier.lease_filter import LeaseFilter
from tamias.frontier.postgres import PostgresFrontier
from tamias.frontier.service import make_crawl
from tamias.model.capture import Outcome
from tamias.model.errors import UsageError
from tamias.model.item import NEVER, Item
from tamias.model.lease import Done, Return
from tests.messages import unsaid


@pytest.fixture
def session(clean_database):
    with closing(clean_database.session()) as session:
        yield session


class Clock:
    now = 1_800_000_000_000

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def news(session):
    return make_crawl(session, "news").crawl


@pytest.fixture
def frontier(session, clock):
    return PostgresFrontier(session, same_url=str.__eq__, delay_ms=0, clock=clock)


def items(crawl, count=3, host="a"):
    urls = [f"http://{host}/{n}" for n in range(count)]
    return [Item(url=url, key=url, host=host, crawl=crawl) for url in urls]


def lent(frontier):
    return sorted((task.crawl, task.url) for lease in frontier.lease(10) for task in lease.tasks)


def finish(frontier, leases, most=100):
    for lease in leases:
        done = tuple(Done(task=task, outcome=Outcome.OK, due=NEVER) for task in lease.tasks[:most])
        frontier.finish([Return(lease=lease, done=done)])


def test_the_urls_of_a_paused_crawl_are_not_lent_and_those_of_others_are(session, frontier, news):
    frontier.put([*items(1, 1), *items(news, 1), *items(news, 1, host="b")])
    crawls.pause(session, news)
    assert lent(frontier) == [(1, "http://a/0")]


def test_a_url_put_into_a_paused_crawl_is_not_lent(session, frontier, news):
    crawls.pause(session, news)
    frontier.put(items(news))
    assert lent(frontier) == []


def test_a_resumed_crawl_is_lent_again(session, frontier, news):
    frontier.put(items(news, 1))
    crawls.pause(session, news)
    frontier.put(items(news, 1, host="b"))
    crawls.resume(session, news)
    assert lent(frontier) == [(news, "http://a/0"), (news, "http://b/0")]


def test_what_a_worker_holds_of_a_paused_crawl_it_can_finish(session, frontier, news):
    frontier.put(items(news))
    leases = frontier.lease(1)
    crawls.pause(session, news)
    finish(frontier, leases)
    found = {each.number: each for each in crawls.crawls(session)}
    assert (found[news].state, found[news].known, found[news].open) == ("paused", 3, 0)


def test_a_limit_pauses_the_crawl_when_so_many_urls_are_done(session, frontier, clock, news):
    frontier.put(items(news))
    crawls.set_limit(session, news, 1)
    finish(frontier, frontier.lease(1), most=1)
    clock.now += 2000
    assert lent(frontier) == []
    assert crawls.crawls(session)[-1].state == "paused"


def test_a_crawl_at_its_limit_cannot_be_resumed_before_the_limit_is_raised(session, frontier, clock, news):
    frontier.put(items(news))
    crawls.set_limit(session, news, 1)
    finish(frontier, frontier.lease(1), most=1)
    clock.now += 2000
    frontier.lease(1)
    with pytest.raises(UsageError, match="limit of 1 URLs"):
        crawls.resume(session, news)
    crawls.set_limit(session, news, 10)
    crawls.resume(session, news)
    assert len(lent(frontier)) == 2


def test_a_deleted_crawl_is_gone_and_the_others_are_not(session, frontier, news):
    frontier.put([*items(1), *items(news)])
    assert crawls.delete(session, news) == 3
    assert [each.name for each in crawls.crawls(session)] == ["default", "watch"]
    assert len(lent(frontier)) == 3


def test_the_crawl_of_the_archive_cannot_be_deleted(session):
    with pytest.raises(UsageError, match="the archive's own"):
        crawls.delete(session, 2)


def test_a_crawl_that_is_not_there_is_told_with_those_that_are(session, news):
    with pytest.raises(UsageError, match="no crawl 'nobody'; there are: default, news, watch"):
        crawls.named(session, "nobody")


def test_workers_of_the_first_crawl_find_their_hosts_among_many_of_another(session, frontier, news, clock):
    frontier.put([item for n in range(50) for item in items(news, 1, host=f"h{n}")])
    frontier.put(items(1, 1, host="mine"))
    mine = PostgresFrontier(
        session, same_url=str.__eq__, delay_ms=0, clock=clock, lease_filter=LeaseFilter(crawls=(1, 2))
    )
    assert lent(mine) == [(1, "http://mine/0")]
    assert mine.figures().leased == 1


def listed(tamias):
    told = tamias.run("crawls", "--json")
    assert told.returncode == 0, told.stderr
    return {each["name"]: each for each in json.loads(told.stdout)}


@pytest.fixture
def begun(tamias, site_at):
    """A crawl `news` whose three URLs are known and not visited yet, and another site."""
    site, other = site_at("127.0.0.11"), site_at("127.0.0.12")
    for page in ("/0", "/1", "/2"):
        site.pages[page] = other.pages[page] = b"<#a> <#b> <#c> ."
    seeds = [site.url(f"/{page}") for page in range(3)]
    tamias.crawl("--crawl", "news", "--depth", "0", "--max-time", "0", *seeds)
    return tamias, site, other


def test_crawls_run_beside_each_other_and_each_goes_on_with_its_own_policy(begun):
    tamias, site, other = begun
    first = tamias.crawl("--depth", "3", other.url("/0"))
    assert first.returncode == 0, first.stderr
    assert not site.log, "the first crawl visited a URL of the other"
    named = tamias.run("crawl", "--crawl", "news", "--workers", "1")
    assert named.returncode == 0, named.stderr
    found = listed(tamias)
    assert (found["news"]["known"], found["news"]["open"], found["default"]["open"]) == (3, 0, 0)
    assert found["news"]["policy"]["flags"]["crawl__depth"] == 0


def test_a_run_resumes_a_paused_crawl(begun):
    tamias, site, _ = begun
    assert tamias.run("crawls", "pause", "news").returncode == 0
    done = tamias.run("crawl", "--crawl", "news", "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert site.log


def test_a_run_of_a_crawl_whose_limit_is_reached_ends_at_once_and_says_why(begun):
    tamias, site, _ = begun
    assert tamias.run("crawl", "--crawl", "news", "--workers", "1", "--max-urls", "1").returncode == 5
    assert tamias.run("crawls", "limit", "news", "--max-urls", "1").returncode == 0
    before = len(site.log)
    paused = tamias.run("crawl", "--crawl", "news", "--workers", "1")
    assert (paused.returncode, not unsaid(paused.stderr)) == (5, True), paused.stderr
    assert len(site.log) == before


def test_a_crawl_with_rounds_a_buffer_and_a_cap_on_addresses_ends_and_learns_the_addresses(tamias, site):
    for page in range(6):
        site.pages[f"/{page}"] = b"<#a> <#b> <#c> ."
    tamias.env |= {
        "TAMIAS_FRONTIER__ROUND": "0.5",
        "TAMIAS_FRONTIER__PER_ROUND": "2",
        "TAMIAS_FRONTIER__BUFFER": "2",
        "TAMIAS_FRONTIER__PER_ADDRESS": "1",
        "TAMIAS_SEEDS__SITEMAPS": "false",
    }
    done = tamias.crawl("--no-robots", "--depth", "0", *(site.url(f"/{page}") for page in range(6)))
    assert done.returncode == 0, done.stderr
    assert len(site.log) == 6
    with closing(Database(tamias.data)) as database, closing(database.session()) as session:
        assert session.transact(lambda cursor: cursor.execute("SELECT address FROM host").fetchall()) == [
            (site.address,)
        ]
