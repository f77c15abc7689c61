"""Tags that people, rules and pages give to URLs, and what they change in the frontier."""

import json
from contextlib import closing

import pytest

from tamias.frontier.lease_filter import Interest, LeaseFilter
from tamias.frontier.postgres import PostgresFrontier
from tamias.frontier.tags import MOST_VALUES, Tagging, TagSets, change_of
from tamias.model.capture import Outcome
from tamias.model.item import NEVER, Item
from tamias.model.lease import Done, Return


@pytest.fixture(params=[1, 4], ids=["one bucket", "4 buckets"])
def session(clean_database, request):
    with closing(clean_database.session()) as session:
        session.transact(lambda cursor: cursor.execute(f"UPDATE meta SET buckets = {request.param}"))
        yield session


@pytest.fixture
def tagging(session):
    return Tagging(session, same_url=str.__eq__)


def frontier_on(session, *require):
    lease_filter = LeaseFilter(interest=Interest(require)) if require else None
    return PostgresFrontier(session, same_url=str.__eq__, delay_ms=0, lease_filter=lease_filter)


def item(url, tags=(), crawl=1):
    return Item(url=url, key=url, host=url.split("/")[2], tags=tags, crawl=crawl)


def urls(leases):
    return sorted(task.url for lease in leases for task in lease.tasks)


def place(url, crawl=1):
    return url.split("/")[2], crawl, url, url


def counts(session):
    """Queues whose counts are not those of their URLs."""
    wrong = """
    SELECT count(*) FROM queue JOIN LATERAL (
        SELECT count(*) AS known, count(*) FILTER (WHERE due < 9223372036854775807) AS open FROM url
        WHERE url.bucket = queue.bucket AND url.qid = queue.qid AND url.crawl = queue.crawl
          AND url.lane = queue.lane) AS real ON true
    WHERE (queue.known, queue.open) <> (real.known, real.open)"""
    return session.transact(lambda cursor: cursor.execute(wrong).fetchone())[0]


def test_a_tag_given_by_hand_brings_the_url_to_those_who_want_it(session, tagging):
    frontier_on(session).put([item("http://a/1"), item("http://a/2")])
    assert tagging.change(*place("http://a/2"), change_of(["+good"]), "me")
    assert urls(frontier_on(session, "good").lease(10)) == ["http://a/2"]
    assert counts(session) == 0


def test_a_tag_taken_away_by_hand_keeps_the_url_from_them(session, tagging):
    frontier_on(session).put([item("http://a/1", ("good", "at"))])
    tagging.change(*place("http://a/1"), change_of(["-good"]), "me")
    assert tagging.tags(*place("http://a/1")) == ("at",)
    assert frontier_on(session, "good").lease(10) == []
    assert counts(session) == 0


def test_a_pattern_changes_all_urls_of_the_crawl_that_fit_and_no_others(session, tagging):
    frontier = frontier_on(session)
    frontier.put([item(f"http://h{n}/data_{n}") for n in range(30)])
    frontier.put([item("http://h1/dataX1"), item("http://h1/data_1", crawl=2)])
    assert tagging.change_all("http://*/data_*", 1, change_of(["+open"]), "me") == 30
    assert tagging.change_all("http://*/data_*", 1, change_of(["+open"]), "me") == 0
    assert len(urls(frontier_on(session, "open").lease(100))) == 30


def test_a_url_that_is_not_known_cannot_be_tagged(session, tagging):
    assert not tagging.change(*place("http://nowhere/"), change_of(["+good"]), "me")
    assert tagging.tags(*place("http://nowhere/")) is None


def test_a_tag_given_while_the_url_is_being_visited_survives_the_visit(session, tagging):
    frontier = frontier_on(session)
    frontier.put([item("http://a/1")])
    (lease,) = frontier.lease(1)
    tagging.change(*place("http://a/1"), change_of(["+good"]), "me")
    frontier.finish([Return(lease=lease, done=(Done(task=lease.tasks[0], outcome=Outcome.OK, due=NEVER),))])
    assert tagging.tags(*place("http://a/1")) == ("good",)
    assert counts(session) == 0


def test_tags_learnt_on_a_visit_do_not_undo_what_somebody_changed_meanwhile(session, tagging):
    frontier = frontier_on(session)
    frontier.put([item("http://a/1", ("seed",))])
    (lease,) = frontier.lease(1)
    tagging.change(*place("http://a/1"), change_of(["+good"]), "me")
    learnt = Done(task=lease.tasks[0], outcome=Outcome.OK, due=NEVER, tags=("seed", "lang=de"))
    frontier.finish([Return(lease=lease, done=(learnt,))])
    assert tagging.tags(*place("http://a/1")) == ("seed", "good")
    assert counts(session) == 0


def test_values_without_end_make_no_lanes_without_end(session):
    lanes = TagSets(session)
    numbers = {lanes.number((f"rank={n}", "de")) for n in range(MOST_VALUES + 50)}
    assert len(numbers) <= MOST_VALUES + 1
    assert lanes.number(("rank=never-seen", "de")) == lanes.number(("de",))


def test_two_processes_give_a_set_of_tags_the_same_number(clean_database):
    with closing(clean_database.session()) as one, closing(clean_database.session()) as other:
        assert TagSets(one).number(("b", "a")) == TagSets(other).number(("a", "b", "a"))


PAGE = b"<html lang='de'><script type='application/ld+json'>{}</script><a href='/next'>x</a>%s</html>"
WORDS = " ".join(f"word{n}" for n in range(400))


def html(body):
    def page(handler):
        handler.send_response(200)
        handler.send_header("Content-Type", "text/html")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return page


def tags_of(tamias, url):
    told = tamias.run("tag", "--json", url)
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)["tags"]


def test_pages_get_tags_from_content_and_rules_and_links_inherit_them(tamias, site):
    site.pages["/"] = html(PAGE % WORDS.encode())
    site.pages["/next"] = html(PAGE % (WORDS + " more").encode())
    tamias.env |= {
        "TAMIAS_TAGS__CONTENT": "language,type,markup,near",
        "TAMIAS_TAGS__RULES": "/next$ followed",
        "TAMIAS_TAGS__INHERIT": "true",
    }
    done = tamias.crawl("--depth", "1", site.url("/"))
    assert done.returncode == 0, done.stderr
    assert tags_of(tamias, site.url("/")) == ["lang=de", "type=text/html", "has=json-ld"]
    assert tags_of(tamias, site.url("/next")) == [
        "followed",
        "lang=de",
        "type=text/html",
        "has=json-ld",
        "near-duplicate",
    ]


def test_a_crawl_with_an_interest_visits_only_such_urls_and_ends(tamias, site):
    site.pages["/"] = b"<> <#p> </good-1>, </good-2>, </bad> ."
    for page in ("/good-1", "/good-2", "/bad"):
        site.pages[page] = b"<> <#p> 1 ."
    tamias.env["TAMIAS_TAGS__RULES"] = "/good-|/$ good"
    done = tamias.crawl("--require", "good", site.url("/"))
    assert done.returncode == 0, done.stderr
    assert (site.asked("/good-1"), site.asked("/good-2"), site.asked("/bad")) == (1, 1, 0)


def test_tags_are_changed_by_hand(tamias, site):
    site.pages["/"] = b"<> <#p> 1 ."
    assert tamias.crawl(site.url("/")).returncode == 0
    assert tamias.run("tag", site.url("/"), "+good", "+draft").returncode == 0
    assert "1 URL changed" in tamias.run("tag", "http://*", "-draft").stdout
    assert tags_of(tamias, site.url("/")) == ["good"]


def test_what_is_no_change_of_tags_is_told(tamias):
    refused = tamias.run("tag", "http://a.example/*", "good")
    assert refused.returncode == 2
    assert "write +TAG" in refused.stderr


def test_the_audit_log_says_that_a_url_was_not_known(tamias):
    refused = tamias.run("tag", "http://a.example/", "+good")
    assert refused.returncode == 2
    assert "does not know http://a.example/" in refused.stderr
    assert "tag  http://a.example/  failed: " in tamias.run("audit").stdout


def test_who_set_a_tag_is_known_until_it_is_taken_away(session, tagging):
    frontier_on(session).put([item("http://a/1", tags=("lang=de",))])
    where = place("http://a/1")
    tagging.change(*where, change_of(["+good", "+open"]), "ann")
    tagging.change(*where, change_of(["+new", "-open"]), "bob")
    assert tagging.tags(*where) == ("lang=de", "good", "new")
    assert [(each.tag, each.by) for each in tagging.setters(*where)] == [("good", "ann"), ("new", "bob")]
    tagging.change(*where, change_of(["-good"]), "bob")
    assert [(each.tag, each.by) for each in tagging.setters(*where)] == [("new", "bob")]
