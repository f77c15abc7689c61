"""The examples find what they look for sooner than a breadth-first crawl: counted on a small web."""

import pytest

from benchmarks.strategy.harvest import harvest
from benchmarks.strategy.run import BREADTH_FIRST, run
from benchmarks.strategy.web import KINDS, SEEDS, TopicWeb


def test_the_web_can_be_walked_from_its_seeds():
    web = TopicWeb(60, 8, 5)
    reached = {(host, 0) for host in range(SEEDS)}
    ahead = list(reached)
    while ahead:
        found = set(web.links(*ahead.pop())) - reached
        reached |= found
        ahead += found
    assert len(reached) == 60 * 8


@pytest.mark.parametrize("kind", KINDS)
def test_the_pages_of_each_kind_stand_on_so_many_hosts(kind):
    web = TopicWeb()
    assert sum(web.kind(host) == kind for host in range(web.hosts)) == 50
    assert web.relevant(kind) == 50 * 16


def test_a_harvest_counts_fetches_until_parts_of_it_are_had():
    web = TopicWeb(60, 8, 5)
    mine = [host for host in range(60) if web.kind(host) == KINDS[0]]
    visits = [(0, 0), *((host, page) for host in mine for page in range(8))]
    told = harvest(web, "mine", KINDS[0], visits, len(visits))
    assert (told.found, told.until["0.8"], told.hosts_until, told.others_before) == (35, 33, 34, 1)


def test_a_focused_crawl_needs_far_fewer_fetches_and_meets_its_hosts_first(pytestconfig):
    lines = []
    told = run(
        TopicWeb(60, 8, 5),
        pytestconfig.rootpath / "examples" / "strategies",
        kinds=[KINDS[0]],
        cost=False,
        out=lines.append,
    )
    plain, focused = told["harvests"]
    assert (plain["crawl"], focused["crawl"]) == (BREADTH_FIRST, KINDS[0])
    # Half of them on the web of the benchmark; on one this small a few fetches more or less count.
    assert 4 * focused["until"]["0.8"] <= 3 * plain["until"]["0.8"], "\n".join(lines)
    assert focused["others_before"] < plain["others_before"], "\n".join(lines)
