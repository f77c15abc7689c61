"""A section of the frontier, and an interest: what a service that has them takes and gives."""

import json
from contextlib import closing

import grpc
import pytest

from tamias.features.remote_workers.grpc.connection import FRONTIER, message
from tamias.features.urlfrontier.held import Holds, Wish
from tamias.frontier.keys import bucket_of, host_hash
from tamias.frontier.lease_filter import Interest, LeaseFilter, buckets_of, parse_section
from tamias.frontier.postgres import PostgresFrontier
from tamias.frontier.put import UrlPut
from tamias.model.errors import UsageError
from tamias.model.item import Item

BUCKETS = 16
HOSTS = [f"h{n}" for n in range(60)]
SECTION = (4, 7)
_ITEM = message("urlfrontier.URLItem")
OURS = {host for host in HOSTS if 4 <= bucket_of(host_hash(host), BUCKETS) <= 7}


@pytest.fixture
def session(clean_database):
    with closing(clean_database.session()) as session:
        session.transact(lambda cursor: cursor.execute(f"UPDATE meta SET buckets = {BUCKETS}"))
        yield session


def items(tags=()):
    return [Item(url=f"http://{host}/", key=f"http://{host}/", host=host, tags=tags) for host in HOSTS]


def told():
    return [Item(url=f"http://{host}/", key=f"http://{host}/", host=host, crawl=1) for host in HOSTS]


def given(holds):
    handing = holds.begin(Wish(hosts=None, per_host=None, hold_ms=1000))
    found = set()
    while part := holds.next(handing):
        found |= {part.hosts[row[0]] for row in part.rows}
    return found


@pytest.fixture
def served(tamias_at):
    """`served(*options)` is the address of a service on sixteen buckets."""

    def start(*options):
        tamias = tamias_at("sixteen")
        tamias.env["TAMIAS_FRONTIER__BUCKETS"] = str(BUCKETS)
        process = tamias.start("frontier", "--json", "--port", "0", *options)
        return json.loads(process.stdout.readline())["address"]

    return start


def _discovered(host):
    item = _ITEM(ID=host)
    item.discovered.info.url, item.discovered.info.key = f"http://{host}/", host
    return item


def test_the_section_of_the_test_is_a_real_one():
    assert 5 < len(OURS) < 40


def test_a_frontier_with_a_section_lends_only_its_hosts(session):
    frontier = PostgresFrontier(session, same_url=str.__eq__, lease_filter=LeaseFilter(section=SECTION))
    frontier.put(items())
    assert {lease.host for lease in frontier.lease(100)} == OURS


def test_two_sections_are_the_whole(session):
    halves = [
        PostgresFrontier(session, same_url=str.__eq__, lease_filter=LeaseFilter(section=section))
        for section in ((0, 7), (8, 15))
    ]
    halves[0].put(items())
    first, second = ({lease.host for lease in half.lease(100)} for half in halves)
    assert first | second == set(HOSTS)
    assert not first & second


def test_a_service_with_a_section_takes_only_its_urls(session):
    ours = UrlPut(session, str.__eq__, section=SECTION)
    taken = ours.put(told(), shortens=False)
    assert {host for host, each in zip(HOSTS, taken, strict=True) if each} == OURS
    assert {host for host in HOSTS if ours.owns(host)} == OURS


def test_a_service_with_a_section_gives_only_its_urls(session):
    UrlPut(session, str.__eq__).put(told(), shortens=False)
    assert given(Holds(session, LeaseFilter(section=SECTION))) == OURS


def test_a_service_with_a_section_gives_nothing_of_a_queue_elsewhere(session):
    UrlPut(session, str.__eq__).put(told(), shortens=False)
    holds = Holds(session, LeaseFilter(section=SECTION))
    elsewhere = next(host for host in HOSTS if host not in OURS)
    assert holds.next(holds.begin(Wish(hosts=1, per_host=1, hold_ms=1000, crawl=1, host=elsewhere))) is None


def test_a_service_with_an_interest_gives_only_such_urls(session):
    frontier = PostgresFrontier(session, same_url=str.__eq__)
    frontier.put(items(("good",))[:10] + items(("bad",))[10:])
    assert given(Holds(session, LeaseFilter(interest=Interest(("good",))))) == set(HOSTS[:10])


@pytest.mark.parametrize("section", [(0, 16), (-1, 3), (5, 4)])
def test_a_section_that_is_not_there_is_refused(section):
    with pytest.raises(UsageError, match="it has 16"):
        buckets_of(section, BUCKETS)


@pytest.mark.parametrize("text", ["", "a-b", "1-", "-3", "1-2-3"])
def test_what_is_no_range_is_refused(text):
    with pytest.raises(UsageError, match="write it as 0-7"):
        parse_section(text)


def test_the_service_says_so_when_a_url_is_not_of_its_section(served):
    address = served("--buckets", "4-7")
    with grpc.insecure_channel(address) as channel:
        call = channel.stream_stream(
            f"/{FRONTIER}/PutURLs", _ITEM.SerializeToString, message("urlfrontier.AckMessage").FromString
        )
        acks = call(iter([_discovered(host) for host in HOSTS]), timeout=60)
        status = {ack.ID: ack.status for ack in acks}
    assert {host for host in HOSTS if status[host] == 0} == OURS
    assert {host for host in HOSTS if status[host] == 2} == set(HOSTS) - OURS


def test_a_service_of_a_section_that_is_not_there_does_not_start(tamias):
    refused = tamias.run("frontier", "--port", "0", "--buckets", "3-5")
    assert refused.returncode == 2
    assert "it has 1" in refused.stderr
