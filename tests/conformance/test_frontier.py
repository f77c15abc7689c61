"""What every frontier promises, asked of each one we have."""

import random
from contextlib import closing

import msgspec
import pytest
from memory_frontier import MemoryFrontier

from tamias.frontier.lease_filter import Interest, LeaseFilter
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.capture import Outcome
from tamias.model.cut import BELOW, DEPTH, FILTER, PRIVATE, ROBOTS, SCOPE
from tamias.model.item import NEVER, Item
from tamias.model.lease import Done, Return, Unreachable

HOUR = 3_600_000


class Clock:
    """Time that passes when a test says so."""

    def __init__(self):
        self.now = 1_800_000_000_000

    def __call__(self):
        return self.now

    def pass_(self, seconds):
        self.now += int(seconds * 1000)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(params=["memory", "postgres", "postgres, 4 buckets"])
def lending(request, clock):
    """`lending(lease_filter)` is a frontier that lends on such terms; one for each test."""
    if request.param == "memory":
        yield lambda lease_filter: MemoryFrontier(clock=clock, lease_filter=lease_filter)
        return
    database = request.getfixturevalue("clean_database")
    with closing(database.session()) as session:
        if "4" in request.param:
            session.transact(lambda cursor: cursor.execute("UPDATE meta SET buckets = 4"))
        yield lambda lease_filter: PostgresFrontier(
            session, same_url=str.__eq__, clock=clock, lease_filter=lease_filter
        )


@pytest.fixture
def frontier(lending):
    return lending(None)


def item(url, *, crawl=1, score=0.5, due=None, depth=0, tags=(), host=None):
    host = host or url.split("/")[2]
    return Item(url=url, key=url, host=host, crawl=crawl, score=score, due=due, depth=depth, tags=tags)


def done(task, outcome=Outcome.OK, due=NEVER, **more):
    return Done(task=task, outcome=outcome, due=due, **more)


def finished(lease, **more):
    return Return(lease=lease, done=tuple(done(task) for task in lease.tasks), **more)


def figures(frontier, crawl=1):
    return next(each for each in frontier.figures().crawls if each.crawl == crawl)


def test_a_put_url_is_leased_with_all_that_was_said_of_it(frontier):
    frontier.put([item("http://a/1", score=0.75, depth=3, tags=("csv", "at"))])
    (lease,) = frontier.lease(10)
    (task,) = lease.tasks
    assert (lease.host, task.url, task.score, task.depth, task.tags) == (
        "a",
        "http://a/1",
        0.75,
        3,
        ("csv", "at"),
    )
    assert task.status is Outcome.NEW


def test_a_second_put_of_a_url_is_known_and_changes_nothing(frontier):
    first = frontier.put([item("http://a/1", score=0.1)])
    second = frontier.put([item("http://a/1", score=0.9)])
    assert (first, second) == (1, 0)
    assert frontier.lease(1)[0].tasks[0].score == pytest.approx(0.1)


def test_a_url_twice_in_one_batch_is_one_url(frontier):
    assert frontier.put([item("http://a/1"), item("http://a/1")]) == 1
    assert figures(frontier).known == 1


def test_a_leased_host_is_not_leased_again(frontier):
    frontier.put([item("http://a/1"), item("http://a/2")])
    assert len(frontier.lease(10, per_host=1)) == 1
    frontier.put([item("http://a/3")])
    assert frontier.lease(10) == []


def test_a_lease_holds_no_more_hosts_and_urls_than_asked_for(frontier):
    frontier.put([item(f"http://h{host}/{page}") for host in range(7) for page in range(7)])
    leases = frontier.lease(3, per_host=2)
    assert [len(lease.tasks) for lease in leases] == [2, 2, 2]


def test_a_finished_url_does_not_come_back(frontier, clock):
    frontier.put([item("http://a/1")])
    frontier.finish([finished(frontier.lease(1)[0])])
    clock.pass_(3600)
    assert frontier.lease(10) == []
    assert figures(frontier).open == 0


def test_a_url_that_was_not_settled_is_still_due_after_the_release(frontier, clock):
    frontier.put([item("http://a/1"), item("http://a/2")])
    (lease,) = frontier.lease(1)
    frontier.finish([Return(lease=lease, done=(done(lease.tasks[0]),))])
    clock.pass_(1)
    (again,) = frontier.lease(1)
    assert [task.url for task in again.tasks] == [lease.tasks[1].url]


def test_a_url_to_be_visited_again_comes_back_when_it_is_due_with_what_was_learnt(frontier, clock):
    frontier.put([item("http://a/1")])
    (lease,) = frontier.lease(1)
    later = clock.now + HOUR
    news = done(lease.tasks[0], Outcome.FAILED, later, fails=2, etag='"e"', last_modified="then")
    frontier.finish([Return(lease=lease, done=(news,))])
    clock.pass_(3599)
    assert frontier.lease(1) == []
    assert figures(frontier).next_at == later
    clock.pass_(1)
    (task,) = frontier.lease(1)[0].tasks
    assert (task.status, task.fails, task.etag, task.last_modified) == (Outcome.FAILED, 2, '"e"', "then")


def test_the_delay_is_kept_between_two_leases_of_a_host(frontier, clock):
    frontier.put([item("http://a/1"), item("http://a/2")])
    (lease,) = frontier.lease(1, per_host=1)
    frontier.finish([finished(lease)])
    clock.pass_(0.999)
    assert frontier.lease(1) == []
    clock.pass_(0.001)
    assert len(frontier.lease(1)) == 1


def test_a_release_without_work_also_keeps_the_delay(frontier, clock):
    frontier.put([item("http://a/1")])
    frontier.release(frontier.lease(1))
    assert frontier.lease(1) == []
    clock.pass_(1)
    assert len(frontier.lease(1)) == 1


def test_a_host_gets_the_delay_it_asked_for(frontier, clock):
    frontier.put([item("http://a/1"), item("http://a/2")])
    frontier.finish([finished(frontier.lease(1, per_host=1)[0], delay_ms=5000)])
    clock.pass_(4.9)
    assert frontier.lease(1) == []
    clock.pass_(0.1)
    assert frontier.lease(1)[0].delay_ms == 5000


def test_a_blocked_host_stays_blocked_also_when_new_urls_come(frontier, clock):
    frontier.put([item("http://a/1")])
    frontier.finish([finished(frontier.lease(1)[0], blocked_until=clock.now + HOUR)])
    frontier.put([item("http://a/2")])
    clock.pass_(3599)
    assert frontier.lease(1) == []
    clock.pass_(1)
    assert len(frontier.lease(1)) == 1


def test_a_put_wakes_a_host_that_had_nothing_to_do(frontier, clock):
    frontier.put([item("http://a/1")])
    frontier.finish([finished(frontier.lease(1)[0])])
    clock.pass_(10)
    frontier.put([item("http://a/2")])
    assert [task.url for task in frontier.lease(1)[0].tasks] == ["http://a/2"]


def test_a_put_to_a_leased_host_is_served_after_the_release(frontier, clock):
    frontier.put([item("http://a/1")])
    (lease,) = frontier.lease(1)
    frontier.put([item("http://a/2")])
    frontier.finish([finished(lease)])
    clock.pass_(1)
    assert [task.url for task in frontier.lease(1)[0].tasks] == ["http://a/2"]


def test_a_url_put_for_later_is_not_leased_before(frontier, clock):
    frontier.put([item("http://a/1", due=clock.now + HOUR)])
    assert frontier.lease(1) == []
    clock.pass_(3600)
    assert len(frontier.lease(1)) == 1


def test_a_url_put_as_never_due_is_known_and_not_open(frontier):
    frontier.put([item("http://a/1", due=NEVER)])
    assert frontier.lease(1) == []
    assert (figures(frontier).known, figures(frontier).open) == (1, 0)


def test_a_lease_that_was_not_renewed_ends_and_the_host_is_lent_again(frontier, clock):
    frontier.put([item("http://a/1")])
    frontier.lease(1, seconds=30)
    clock.pass_(30)
    assert frontier.lease(1) == [], "the dead worker may have asked the host a moment ago: one delay more"
    clock.pass_(1)
    assert len(frontier.lease(1)) == 1


def test_a_renewed_lease_goes_on(frontier, clock):
    frontier.put([item("http://a/1")])
    leases = frontier.lease(1, seconds=30)
    clock.pass_(20)
    (renewed,) = frontier.renew(leases, seconds=30)
    assert renewed.ends_at == clock.now + 30_000
    clock.pass_(20)
    assert frontier.lease(1) == []


def test_a_lease_that_ended_cannot_be_renewed(frontier, clock):
    frontier.put([item("http://a/1")])
    leases = frontier.lease(1, seconds=30)
    clock.pass_(31)
    assert frontier.renew(leases) == []


def test_a_late_finish_changes_nothing(frontier, clock):
    frontier.put([item("http://a/1")])
    (late,) = frontier.lease(1, seconds=30)
    clock.pass_(31)
    (current,) = frontier.lease(1, seconds=30)
    assert frontier.finish([finished(late)]) == frozenset()
    assert figures(frontier).open == 1
    assert frontier.finish([finished(current)]) == {current.qid}
    assert figures(frontier).open == 0


def test_a_late_return_beside_the_current_one_of_the_same_host_counts_for_nothing(frontier, clock):
    frontier.put([item("http://a/1"), item("http://a/2")])
    (late,) = frontier.lease(1, seconds=30)
    clock.pass_(31)
    (current,) = frontier.lease(1, seconds=30)
    again = Return(lease=late, done=(done(late.tasks[0], Outcome.FAILED),))
    frontier.finish([again, Return(lease=current, done=(done(current.tasks[0]),))])
    assert figures(frontier).open == 1


def test_a_finish_that_is_repeated_counts_once(frontier):
    frontier.put([item("http://a/1"), item("http://a/2")])
    (lease,) = frontier.lease(1)
    part = Return(lease=lease, done=(done(lease.tasks[0]),), release=False)
    frontier.finish([part])
    frontier.finish([part])
    assert (figures(frontier).known, figures(frontier).open) == (2, 1)


def test_settling_without_release_keeps_the_host(frontier):
    frontier.put([item("http://a/1"), item("http://a/2")])
    (lease,) = frontier.lease(1)
    frontier.finish([Return(lease=lease, done=(done(lease.tasks[0]),), release=False)])
    frontier.put([item("http://a/3")])
    assert frontier.lease(1) == []
    assert frontier.finish([Return(lease=lease, done=(done(lease.tasks[1]),))]) == {lease.qid}


def test_the_record_is_written_with_the_hosts_that_still_held(frontier, clock):
    frontier.put([item("http://a/1")])
    (lost,) = frontier.lease(1, seconds=30)
    clock.pass_(31)
    frontier.put([item("http://b/1")])
    held = {lease.host: lease for lease in frontier.lease(2, seconds=30)}["b"]
    seen = []
    frontier.finish([finished(lost), finished(held)], lambda _cursor, hosts: seen.append(hosts))
    assert frozenset().union(*seen) == {held.qid}


def test_the_best_urls_of_a_host_come_first_on_most_hosts(frontier):
    frontier.put([item(f"http://h{host}/{n}", score=n / 10) for host in range(32) for n in range(10)])
    best = [pytest.approx(score) for score in (0.9, 0.8, 0.7)]
    leases = frontier.lease(32, per_host=3)
    assert sum([task.score for task in lease.tasks] == best for lease in leases) >= 18


def test_hosts_of_a_higher_class_are_lent_first_and_none_starves(frontier, clock):
    frontier.put([item(f"http://high{n}/", score=0.95) for n in range(30)])
    frontier.put([item(f"http://low{n}/", score=0.05) for n in range(10)])
    order = []
    for _ in range(40):
        order += [lease.host for lease in frontier.lease(2)]
    assert len(order) == len(set(order)) == 40
    assert sum(host.startswith("high") for host in order[:20]) > 12


def test_two_crawls_share_a_host_but_not_their_urls(frontier, clock):
    frontier.put([item("http://a/1", crawl=1), item("http://a/1", crawl=2)])
    (lease,) = frontier.lease(10)
    assert sorted(task.crawl for task in lease.tasks) == [1, 2]
    frontier.finish([finished(lease)])
    assert figures(frontier, 1).open == 0


def test_figures_tell_known_open_hosts_and_leases(frontier, clock):
    frontier.put([item("http://a/1"), item("http://a/2"), item("http://b/1")])
    (lease,) = frontier.lease(1, per_host=1)
    told = figures(frontier)
    assert (told.known, told.open, told.hosts, told.leased) == (3, 3, 2, 1)
    frontier.finish([finished(lease)])
    assert (figures(frontier).open, figures(frontier).leased) == (2, 0)


def test_a_sweep_of_a_healthy_frontier_finds_nothing(frontier):
    frontier.put([item(f"http://h{n}/", due=None) for n in range(20)])
    frontier.lease(5)
    assert frontier.sweep() == 0


def test_a_random_crawl_finishes_every_url_exactly_once_at_a_time(frontier, clock):
    chance = random.Random(7)
    pages = [f"http://h{chance.randrange(20)}/{n}" for n in range(400)]
    links = {page: chance.sample(pages, 6) for page in pages}
    seen, held = set(), {}
    frontier.put([item(page, score=chance.random()) for page in pages[:20]])
    reachable = _closure(pages[:20], links)
    for _ in range(4000):
        clock.pass_(chance.random())
        if held and chance.random() < 0.5:
            lease = held.pop(chance.choice(sorted(held)))
            frontier.put(
                [item(link, score=chance.random()) for task in lease.tasks for link in links[task.url]]
            )
            assert frontier.finish([finished(lease)])
            seen.update(task.url for task in lease.tasks)
        for lease in frontier.lease(2, per_host=3, seconds=100_000):
            assert lease.host not in held, "a host was lent twice"
            held[lease.host] = lease
        if not held and not figures(frontier).open:
            break
    assert seen == reachable


def _closure(start, links):
    found, left = set(start), list(start)
    while left:
        fresh = [link for link in links[left.pop()] if link not in found]
        found.update(fresh)
        left += fresh
    return found


def test_values_cross_the_wire_unchanged(frontier):
    frontier.put([item("http://a/é%20'\"\\;--", tags=("ümlaut",))])
    (lease,) = frontier.lease(1)
    assert lease.tasks[0].url == "http://a/é%20'\"\\;--"
    assert msgspec.json.decode(msgspec.json.encode(lease), type=type(lease)) == lease


def urls(leases):
    return sorted(task.url for lease in leases for task in lease.tasks)


def interested(require=(), forbid=()):
    return LeaseFilter(interest=Interest(require, forbid))


def test_an_interest_gets_only_urls_with_all_required_tags(lending):
    frontier = lending(interested(("sitemap", "family")))
    frontier.put(
        [
            item("http://a/both", tags=("family", "sitemap", "at")),
            item("http://a/one", tags=("sitemap",)),
            item("http://a/none"),
            item("http://b/none"),
        ]
    )
    assert urls(frontier.lease(10)) == ["http://a/both"]


def test_an_interest_gets_no_url_with_a_forbidden_tag(lending):
    frontier = lending(interested((), ("adult",)))
    frontier.put(
        [item("http://a/1", tags=("adult", "de")), item("http://a/2", tags=("de",)), item("http://a/3")]
    )
    assert urls(frontier.lease(10)) == ["http://a/2", "http://a/3"]


def test_an_interest_finds_the_one_url_behind_many_others_of_its_host(lending, clock):
    frontier = lending(interested(("rare",)))
    frontier.put([item(f"http://a/{n}", tags=("usual",)) for n in range(200)])
    clock.pass_(1)
    frontier.put([item("http://a/rare", score=0.01, tags=("rare",))])
    assert urls(frontier.lease(1)) == ["http://a/rare"]


def test_contexts_that_documents_wait_for_are_lent_whatever_the_interest(lending):
    frontier = lending(interested(("rare",)))
    frontier.put([item("http://a/context", tags=("kind=context",)), item("http://a/1")])
    assert urls(frontier.lease(1)) == ["http://a/context"]


def test_a_host_without_wanted_urls_is_not_taken_from_others(lending, clock):
    frontier = lending(interested(("rare",)))
    frontier.put([item("http://a/1", tags=("usual",)), item("http://a/2")])
    assert frontier.lease(10) == []
    assert frontier.figures().leased == 0


def test_without_an_interest_urls_of_all_tags_are_lent(frontier):
    frontier.put([item("http://a/1", tags=("de",)), item("http://a/2", tags=("at",)), item("http://a/3")])
    assert len(urls(frontier.lease(1))) == 3


def test_tags_learnt_on_a_visit_count_at_the_next_one(lending, clock):
    frontier = lending(interested((), ("shop",)))
    frontier.put([item("http://a/1", tags=("seed",))])
    (lease,) = frontier.lease(1)
    news = done(lease.tasks[0], due=clock.now + HOUR, tags=("seed", "shop"))
    frontier.finish([Return(lease=lease, done=(news,))])
    clock.pass_(3600)
    assert frontier.lease(1) == []


def test_the_figures_of_a_crawl_are_about_what_fits_the_interest(lending):
    frontier = lending(interested(("good",)))
    frontier.put([item("http://a/1", tags=("good",)), item("http://a/2"), item("http://b/1", tags=("bad",))])
    (lease,) = frontier.lease(10)
    frontier.finish([finished(lease)])
    told = figures(frontier)
    assert (told.known, told.open, told.hosts, told.next_at) == (1, 0, 1, None)


def test_tags_learnt_on_a_visit_come_with_the_next_lease(frontier, clock):
    frontier.put([item("http://a/1", tags=("seed",)), item("http://a/2")])
    (lease,) = frontier.lease(1)
    news = [done(task, due=clock.now + HOUR, tags=("lang=de",)) for task in lease.tasks]
    frontier.finish([Return(lease=lease, done=tuple(news))])
    clock.pass_(3600)
    (again,) = frontier.lease(1)
    assert [task.tags for task in again.tasks] == [("lang=de",), ("lang=de",)]
    frontier.finish([finished(again)])
    assert (figures(frontier).known, figures(frontier).open) == (2, 0)


def test_a_worker_of_one_crawl_gets_no_urls_of_another(lending):
    frontier = lending(LeaseFilter(crawls=(7,)))
    frontier.put([item("http://a/1", crawl=1), item("http://a/1", crawl=7), item("http://b/1", crawl=1)])
    assert [(task.url, task.crawl) for lease in frontier.lease(10) for task in lease.tasks] == [
        ("http://a/1", 7)
    ]


def test_a_host_is_lent_once_in_a_round(lending, clock):
    frontier = lending(LeaseFilter(round_ms=300_000))
    frontier.put([item(f"http://a/{n}") for n in range(20)])
    frontier.finish([finished(frontier.lease(1, per_host=10)[0])])
    clock.pass_(299)
    assert frontier.lease(1) == []
    clock.pass_(1)
    assert len(frontier.lease(1, per_host=10)[0].tasks) == 10


def test_a_host_that_got_no_request_is_lent_again_without_its_delay(frontier, clock):
    frontier.put([item(f"http://a/{n}") for n in range(3)])
    for touched in (False, True):
        frontier.finish([finished(frontier.lease(1, per_host=1)[0], touched=touched)])
    assert frontier.lease(1) == []
    clock.pass_(1)
    assert len(frontier.lease(1)) == 1


def test_at_most_so_many_hosts_of_one_address_are_lent_at_once_from_the_first_lease_on(lending, clock):
    frontier = lending(LeaseFilter(per_address=2, address_of=lambda _url: "192.0.2.1"))
    frontier.put([item(f"http://h{n}/{page}", host="a" * n) for n in range(1, 6) for page in range(2)])
    for _ in range(3):
        held = frontier.lease(5, per_host=1)
        assert len(held) == 2
        frontier.finish([finished(held[0])])
        clock.pass_(1)
        assert len(frontier.lease(5, per_host=1)) == 1
        clock.pass_(60)


def test_hosts_of_different_addresses_do_not_wait_for_each_other(lending):
    frontier = lending(LeaseFilter(per_address=1, address_of=lambda url: url.split("/")[2]))
    frontier.put([item(f"http://h{n}/{page}") for n in range(3) for page in range(2)])
    assert len(frontier.lease(5)) == 3


def test_a_lease_is_for_urls_of_one_address_where_addresses_have_a_cap(lending, clock):
    frontier = lending(LeaseFilter(per_address=1, address_of=lambda url: url.split("/")[2]))
    frontier.put([item(f"http://{name}/{page}", host="a") for name in ("x.a", "y.a") for page in range(2)])
    seen = set()
    for _ in range(2):
        (lease,) = frontier.lease(5)
        (name,) = {task.url.split("/")[2] for task in lease.tasks}
        seen.add(name)
        frontier.finish([finished(lease)])
        clock.pass_(1)
    assert seen == {"x.a", "y.a"}


def visited(frontier, clock, cut):
    """Visits the one URL that is due, whose links were cut so."""
    (lease,) = frontier.lease(1)
    (task,) = lease.tasks
    frontier.finish([Return(lease=lease, done=(done(task, cut=cut, etag='"e"'),))])
    clock.pass_(2)
    return task


@pytest.mark.parametrize("cut", [DEPTH, BELOW, BELOW | SCOPE])
def test_a_shorter_way_makes_a_url_due_again_whose_links_hung_on_its_depth(frontier, clock, cut):
    frontier.put([item("http://a/1", depth=3)])
    visited(frontier, clock, cut)
    assert (frontier.put([item("http://a/1", depth=1)]), figures(frontier).open) == (0, 1)
    again = visited(frontier, clock, cut)
    assert (again.depth, again.reopened, again.status) == (1, True, Outcome.OK)
    told = figures(frontier)
    assert (told.known, told.open, told.again) == (1, 0, 1)


@pytest.mark.parametrize("cut", [0, SCOPE | FILTER, ROBOTS, PRIVATE])
def test_a_shorter_way_alone_does_not_open_what_something_else_cut(frontier, clock, cut):
    frontier.put([item("http://a/1", depth=3)])
    visited(frontier, clock, cut)
    frontier.put([item("http://a/1", depth=1)])
    assert (frontier.lease(1), figures(frontier).open, figures(frontier).again) == ([], 0, 0)


@pytest.mark.parametrize("depth", [3, 4])
def test_a_way_that_is_not_shorter_changes_nothing(frontier, clock, depth):
    frontier.put([item("http://a/1", depth=3)])
    visited(frontier, clock, DEPTH)
    frontier.put([item("http://a/1", depth=depth)])
    assert frontier.lease(1) == []


def test_a_url_that_waits_is_visited_as_near_as_it_is_known(frontier):
    frontier.put([item("http://a/1", depth=3, score=0.125)])
    frontier.put([item("http://a/1", depth=1, score=0.5)])
    frontier.put([item("http://a/1", depth=2, score=0.25)])
    (task,) = frontier.lease(1)[0].tasks
    assert (task.depth, task.score, task.reopened) == (1, 0.5, False)


def test_of_two_depths_in_one_batch_the_lesser_counts(frontier):
    frontier.put([item("http://a/1", depth=3), item("http://a/1", depth=2), item("http://a/1", depth=4)])
    assert frontier.lease(1)[0].tasks[0].depth == 2


def test_a_shorter_way_found_during_the_visit_makes_it_due_again(frontier, clock):
    frontier.put([item("http://a/1", depth=3)])
    (lease,) = frontier.lease(1)
    frontier.put([item("http://a/1", depth=1)])
    frontier.finish([Return(lease=lease, done=(done(lease.tasks[0], cut=DEPTH),))])
    clock.pass_(2)
    told = figures(frontier)
    assert (told.open, told.again) == (1, 1)
    (task,) = frontier.lease(1)[0].tasks
    assert (task.depth, task.reopened) == (1, True)


def test_a_shorter_way_found_during_the_visit_does_not_matter_where_nothing_hung_on_it(frontier, clock):
    frontier.put([item("http://a/1", depth=3)])
    (lease,) = frontier.lease(1)
    frontier.put([item("http://a/1", depth=1)])
    frontier.finish([Return(lease=lease, done=(done(lease.tasks[0], cut=SCOPE),))])
    clock.pass_(2)
    assert (frontier.lease(1), figures(frontier).open) == ([], 0)


def test_a_visit_that_read_nothing_leaves_what_cut_the_links(frontier, clock):
    frontier.put([item("http://a/1", depth=3)])
    (lease,) = frontier.lease(1)
    frontier.finish([Return(lease=lease, done=(done(lease.tasks[0], due=clock.now, cut=DEPTH),))])
    clock.pass_(2)
    (lease,) = frontier.lease(1)
    frontier.finish([Return(lease=lease, done=(done(lease.tasks[0], Outcome.UNCHANGED),))])
    clock.pass_(2)
    frontier.put([item("http://a/1", depth=2)])
    assert frontier.lease(1)[0].tasks[0].cut & DEPTH


def test_what_is_put_as_visited_is_opened_by_a_shorter_way(frontier, clock):
    reached = msgspec.structs.replace(item("http://a/1", depth=3, due=NEVER), cut=BELOW)
    frontier.put([reached])
    assert frontier.lease(1) == []
    frontier.put([item("http://a/1", depth=2)])
    assert frontier.lease(1)[0].tasks[0].depth == 2


def away(authority, clock, seconds, **more):
    more = {"tries": 1, "reason": "no answer", "since": clock(), **more}
    return Unreachable(authority=authority, next_at=clock() + int(seconds * 1000), **more)


def test_urls_of_a_place_that_cannot_be_reached_wait_for_its_next_try(frontier, clock):
    urls = [f"http://{name}.a/{number}" for name in ("up", "down") for number in range(12)]
    frontier.put([item(url, host="a") for url in urls])
    (lease,) = frontier.lease(10)
    place = away("http://down.a", clock, 60)
    frontier.finish([Return(lease=lease, unreachable=(place,))])
    clock.pass_(1)
    seen = set()
    while leases := frontier.lease(10):
        (lease,) = leases
        assert lease.unreachable == (place,)
        seen.update(task.url for task in lease.tasks)
        frontier.finish([finished(lease)])
        clock.pass_(1)
    assert seen == {url for url in urls if "up.a" in url}
    assert figures(frontier).open == 12
    assert figures(frontier).next_at == place.next_at
    clock.pass_(60)
    (lease,) = frontier.lease(10, 20)
    assert {task.url for task in lease.tasks} == {url for url in urls if "down.a" in url}


def test_a_place_that_answers_is_not_known_as_unreachable_any_more(frontier, clock):
    frontier.put([item("http://a/1"), item("http://a/2")])
    (lease,) = frontier.lease(10)
    place = away("http://a", clock, 60)
    frontier.finish([Return(lease=lease, unreachable=(place,))])
    clock.pass_(60)
    (lease,) = frontier.lease(10)
    again = msgspec.structs.replace(place, tries=2, next_at=place.next_at + 120_000)
    frontier.finish([Return(lease=lease, unreachable=(again,))])
    clock.pass_(120)
    (lease,) = frontier.lease(10)
    assert lease.unreachable == (again,)
    frontier.finish([Return(lease=lease, reached=("http://a",))])
    clock.pass_(1)
    (lease,) = frontier.lease(10)
    assert lease.unreachable == ()


def test_what_is_given_up_is_lent_at_once(frontier, clock):
    frontier.put([item("http://a/1"), item("http://a/2")])
    (lease,) = frontier.lease(10, 1)
    place = away("http://a", clock, 600, given_up=True)
    frontier.finish([finished(lease, unreachable=(place,))])
    clock.pass_(1)
    (lease,) = frontier.lease(10)
    assert (len(lease.tasks), lease.unreachable) == (1, (place,))


def test_what_was_never_requested_of_a_place_that_is_given_up_fails_with_it(frontier, clock):
    named = [item(f"http://down.a/{number}", host="a", depth=1) for number in range(30)]
    watched = item("http://down.a/watched", host="a", depth=1, crawl=2)
    sitemap = item("http://down.a/map", host="a", depth=1, tags=("kind=sitemap",))
    frontier.put(
        [
            *named,
            watched,
            sitemap,
            item("http://down.a/seed", host="a"),
            item("http://up.a/", host="a", depth=1),
        ]
    )
    (lease,) = frontier.lease(10, 1)
    place = away("http://down.a", clock, 600, given_up=True)
    frontier.finish([finished(lease, unreachable=(place,))])
    left = {"http://down.a/watched", "http://down.a/map", "http://down.a/seed", "http://up.a/"}
    left -= {task.url for task in lease.tasks}
    assert figures(frontier).open + figures(frontier, 2).open == len(left)
    clock.pass_(1)
    (lease,) = frontier.lease(10)
    assert {task.url for task in lease.tasks} == left
    frontier.finish([finished(lease)])
    frontier.put([item("http://down.a/later", host="a", depth=1)])
    clock.pass_(1)
    (lease,) = frontier.lease(10)
    assert [task.url for task in lease.tasks] == ["http://down.a/later"]


def test_a_new_run_does_not_wait_for_what_was_deferred(frontier, clock):
    frontier.put([item("http://a/1"), item("http://a/2"), item("http://b/1", due=clock() + HOUR)])
    (lease,) = frontier.lease(10)
    frontier.finish([Return(lease=lease, unreachable=(away("http://a", clock, 3600),))])
    clock.pass_(10)
    assert frontier.lease(10) == []
    assert frontier.resume_deferred() == 1
    (lease,) = frontier.lease(10)
    assert {task.url for task in lease.tasks} == {"http://a/1", "http://a/2"}
    assert [place.next_at for place in lease.unreachable] == [clock()]
    assert frontier.resume_deferred() == 0


def test_news_of_a_lost_lease_defer_nothing(frontier, clock):
    frontier.put([item("http://a/1")])
    (lost,) = frontier.lease(10, seconds=10)
    clock.pass_(20)
    (lease,) = frontier.lease(10)
    frontier.finish([Return(lease=lost, unreachable=(away("http://a", clock, 3600),))])
    frontier.finish([Return(lease=lease)])
    clock.pass_(2)
    (lease,) = frontier.lease(10)
    assert lease.unreachable == ()
