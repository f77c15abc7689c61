"""Holds of clients as ranges in the rows of queues: no URL is given twice, and none is held by mistake."""

from contextlib import closing

import pytest

from tamias.database.connect import Database
from tamias.features.urlfrontier.held import Holds, Wish
from tamias.frontier.postgres import PostgresFrontier
from tamias.frontier.put import UrlPut
from tamias.frontier.service import Listing, Queues, Spot
from tamias.frontier.tags import Tagging, change_of
from tamias.model.item import NEVER, Item

NOW, HOLD = 1_000_000, 64_000
LATER = NOW + 2 * HOLD


class Service:
    """A frontier whose clock is set by hand."""

    def __init__(self, session, monkeypatch):
        self.now = NOW
        self.session = session
        monkeypatch.setattr(session, "now", lambda: self.now)
        self.put_urls = UrlPut(session, str.__eq__, delay_ms=0)

    def put(self, *names, **words):
        items = [item(name, **words) for name in names]
        return self.put_urls.put(items, shortens=False)

    def put_late(self, *names, at, plain=False):
        """As if their transaction had begun then, and ended only now; `plain`: as on a cluster."""
        late = UrlPut(self.session, str.__eq__, delay_ms=0, clock=lambda: at)
        late._may_put_new = not plain
        late.put([item("a_done", due=NEVER)], shortens=False)  # from now on it knows the queue
        assert late.put([item(name) for name in names], shortens=False) == [True] * len(names)

    def get(self, per_host=None, hold=HOLD):
        holds, found = Holds(self.session), []
        handing = holds.begin(Wish(hosts=None, per_host=per_host, hold_ms=hold))
        while given := holds.next(handing):
            found += [row[2].rpartition("/")[2] for row in given.rows]
        self.now += 1
        return sorted(found)

    def leased(self):
        frontier = PostgresFrontier(self.session, same_url=str.__eq__)
        return sorted(
            task.url.rpartition("/")[2] for lease in frontier.lease(100, 100, 60) for task in lease.tasks
        )

    def figures(self):
        return PostgresFrontier(self.session, same_url=str.__eq__).figures()

    def held(self):
        return Queues(self.session, same_url=str.__eq__).figures(1, None).held

    def single_holds(self):
        return self.session.fetch_all(b"SELECT count(*) FROM url WHERE held_until = due")[0][0]


def item(name, **words):
    url = f"http://{name[0]}.example/{name}"
    return Item(url=url, key=url, host=f"{name[0]}.example", **words)


@pytest.fixture
def service(tmp_path, monkeypatch):
    with closing(Database(tmp_path)) as database, closing(database.session()) as session:
        yield Service(session, monkeypatch)


def test_what_was_drained_is_given_to_nobody_until_the_hold_ends(service):
    service.put("a1", "a2", "b1", due=100)
    service.put("a3", due=200)
    assert service.get() == ["a1", "a2", "a3", "b1"]
    assert service.single_holds() == 0
    assert service.held() == 4
    assert service.get() == []
    assert service.leased() == []
    service.now += HOLD // 2
    assert service.get() == []
    service.now = LATER
    assert service.held() == 0
    assert service.get() == ["a1", "a2", "a3", "b1"]
    service.now += LATER
    assert service.leased() == ["a1", "a2", "a3", "b1"]


def test_of_urls_due_at_one_time_only_those_that_were_given_are_held(service):
    service.put("a1", due=100)
    service.put("a2", "a3", "a4", "a5", due=200)
    first = service.get(per_host=3)
    assert first[0] == "a1"
    assert service.held() == 3
    second = service.get()
    assert sorted(first + second) == ["a1", "a2", "a3", "a4", "a5"]
    assert service.get() == service.leased() == []


def test_holds_of_different_lengths_end_each_at_its_time(service):
    service.put("a1", "a2", due=100)
    assert service.get() == ["a1", "a2"]
    service.put("a3", due=300)
    assert service.get(hold=10 * HOLD) == ["a3"]
    assert service.held() == 3
    service.now = LATER
    assert service.get() == ["a1", "a2"]
    service.now += 2 * HOLD
    assert service.get(hold=HOLD) == ["a1", "a2"]
    service.now = NOW + 11 * HOLD
    assert service.get() == ["a1", "a2", "a3"]


@pytest.mark.parametrize("hold", [1000, 2000, 10_000])
def test_a_short_hold_ends_in_time(service, hold):
    service.put("a", "b")
    for now in range(LATER, LATER + 20 * hold, 2 * hold - 7):
        service.now = now
        assert service.get(hold=hold) == ["a", "b"]
        service.now = now + hold - 1
        assert service.held() == 2
        service.now = now + hold
        assert service.held() == 0


def test_a_client_holds_no_more_than_it_asks_for(service):
    service.put(*(f"a{number}" for number in range(10)), due=100)
    service.put("a10", due=90)
    assert len(service.get(per_host=4)) == 4
    assert service.get(per_host=4) == []
    assert len(service.get(per_host=6)) == 6


def test_what_is_told_of_a_held_url_ends_its_hold_alone(service):
    service.put("a1", "a2", "a3", "a4", due=100)
    service.get()
    words = {"overwrites": True, "keeps_tags": True}
    service.put("a1", due=NEVER, **words)
    service.put("a2", due=50, **words)
    service.put("a3", due=NOW + HOLD // 4, **words)
    assert service.held() == 1
    assert service.get() == ["a2"]
    service.now = NOW + HOLD // 2
    assert service.get() == ["a3"]
    service.now = LATER + HOLD
    assert service.get() == ["a2", "a3", "a4"]


@pytest.mark.parametrize(("count", "plain"), [(1, False), (5, False), (60, False), (60, True)])
def test_a_url_that_is_put_meanwhile_is_not_held(service, count, plain):
    service.put("a0", due=300)
    assert service.get() == ["a0"]
    new = [f"a{number}" for number in range(1, count + 1)]
    service.put_late(*new, at=200, plain=plain)
    assert service.held() == 1
    assert service.get() == sorted(new)
    assert service.held() == count + 1


def test_workers_get_what_is_put_meanwhile_and_not_what_is_held(service):
    service.put("a1", "a2", due=100)
    service.get()
    service.put("a3", due=300)
    assert service.leased() == ["a3"]


def test_a_held_url_that_gets_other_tags_stays_held(service):
    service.put("a1", "a2", due=100)
    service.get()
    service.put("a1", due=NOW + HOLD // 4, overwrites=True, keeps_tags=False, tags=("kind=page",))
    assert service.get() == service.leased() == []
    assert service.held() == 1
    service.now = NOW + HOLD // 2
    assert service.get() == ["a1"]
    service.now = LATER + HOLD
    assert service.get() == ["a1", "a2"]


def test_a_held_url_that_somebody_tags_stays_held(service):
    service.put("a1", "a2", due=100)
    service.get()
    url = item("a1").url
    tagging = Tagging(service.session, same_url=str.__eq__)
    assert tagging.change("a.example", 1, url, url, change_of(["+good"]), "me")
    assert service.get() == service.leased() == []
    assert service.held() == 2
    service.now = LATER
    assert service.get() == ["a1", "a2"]


def test_what_is_told_of_a_held_url_does_not_make_the_others_due(service):
    service.put("a1", "a2", due=100)
    service.get()
    service.put("a1", due=NOW + HOLD // 4, overwrites=True, keeps_tags=True)
    (crawl,) = (each for each in service.figures().crawls if each.crawl == 1)
    assert crawl.next_due == NOW + HOLD // 4


def test_lists_show_when_a_hold_ends(service):
    service.put("a1", due=100)
    service.get()
    queues = Queues(service.session, same_url=str.__eq__)
    url = item("a1").url
    ((listed,), _) = queues.urls(Listing(crawl=1), Spot(), 10)
    assert listed.due == queues.status("a.example", 1, url, url).due == NOW + HOLD
    service.now = LATER
    assert queues.status("a.example", 1, url, url).due == 100


def test_no_queue_sleeps_when_urls_of_it_are_due(service):
    service.put("a1", "a2", due=100)
    service.get()
    service.put("a3", due=NOW + 10)
    service.now += 20
    assert PostgresFrontier(service.session, same_url=str.__eq__).sweep() == 0
    assert service.get() == ["a3"]
