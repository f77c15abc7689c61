"""Sixteen buckets and eight workers: every URL is with one worker at a time, and all are finished."""

import random
import threading
from collections import Counter
from contextlib import closing

import pytest

from tamias.frontier.lease_filter import Interest, LeaseFilter
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.capture import Outcome
from tamias.model.item import NEVER, Item
from tamias.model.lease import Done, Return

BUCKETS, WORKERS, HOSTS, PAGES = 16, 8, 60, 800
TAGS = ((), ("de",), ("at", "de"), ("kind=sitemap",))


class Web:
    """Pages that link to each other, and who has which of them."""

    def __init__(self):
        chance = random.Random(11)
        self.items = {}
        for number in range(PAGES):
            host = f"h{chance.randrange(HOSTS)}"
            url = f"http://{host}/{number}"
            self.items[url] = Item(
                url=url, key=url, host=host, crawl=chance.choice((1, 2)), score=chance.random(),
                tags=chance.choice(TAGS),
            )  # fmt: skip
        pages = list(self.items)
        self.links = {page: chance.sample(pages, 5) for page in pages}
        self.seeds = pages[:40]
        self.visits = Counter()
        self.twice = []
        self._held = set()
        self._lock = threading.Lock()

    def take(self, lease):
        with self._lock:
            if lease.host in self._held:
                self.twice.append(lease.host)
            self._held.add(lease.host)

    def give(self, lease):
        with self._lock:
            self._held.remove(lease.host)
            self.visits.update(task.url for task in lease.tasks)

    def reachable(self):
        found, left = set(self.seeds), list(self.seeds)
        while left:
            fresh = [page for page in self.links[left.pop()] if page not in found]
            found.update(fresh)
            left += fresh
        return found


def work(database, web, number, errors):
    """A worker that ends when nothing is open; it visits, puts links, tags and finishes."""
    lease_filter = [None, LeaseFilter(interest=Interest((), ("no-such-tag",))), LeaseFilter(crawls=(1, 2))][
        number % 3
    ]
    chance = random.Random(number)
    try:
        with closing(database.session()) as session:
            frontier = PostgresFrontier(session, same_url=str.__eq__, delay_ms=0, lease_filter=lease_filter)
            while any(crawl.open for crawl in frontier.figures().crawls):
                for lease in frontier.lease(3, per_host=5, seconds=60):
                    web.take(lease)
                    links = [web.items[link] for task in lease.tasks for link in web.links[task.url]]
                    frontier.put(links)
                    done = tuple(
                        Done(task=task, outcome=Outcome.OK, due=NEVER, tags=chance.choice((None, *TAGS)))
                        for task in lease.tasks
                    )
                    web.give(lease)
                    frontier.finish([Return(lease=lease, done=done)])
    except Exception as error:  # noqa: BLE001 (told by the test)
        errors.append(error)


@pytest.fixture
def database(clean_database):
    with closing(clean_database.session()) as session:
        session.transact(lambda cursor: cursor.execute(f"UPDATE meta SET buckets = {BUCKETS}"))
    return clean_database


def test_eight_workers_finish_every_url_once_and_no_host_is_with_two_of_them(database):
    web, errors = Web(), []
    with closing(database.session()) as session:
        frontier = PostgresFrontier(session, same_url=str.__eq__, delay_ms=0)
        frontier.put([web.items[page] for page in web.seeds])
        threads = [threading.Thread(target=work, args=(database, web, n, errors)) for n in range(WORKERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        buckets = session.transact(
            lambda cursor: cursor.execute("SELECT DISTINCT bucket FROM url").fetchall()
        )
        assert frontier.sweep() == 0, "a host slept"
    assert errors == []
    assert web.twice == []
    assert set(web.visits) == web.reachable()
    assert set(web.visits.values()) == {1}
    assert len(buckets) == BUCKETS
