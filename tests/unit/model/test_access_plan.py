"""Which way to a dataset, for which task, and what comes next when it fails."""

from collections import Counter
from random import Random

import pytest

from tamias.archive.sources.access_plan import MOST_MIRRORS, access_plan, dump_parts
from tamias.model.site import Location, Prefix, SemanticDataset

DRAWS = 11_000
P = "http://a.example/products/"


def at(name, priority=None):
    return Location(url=f"http://{name}", priority=priority)


PAPER = SemanticDataset(
    prefixes=(Prefix(iri=P),),
    dumps=(at("a.example/dump.rdf"), at("backup.a.example/dump.rdf", 0)),
    fragments=(at("a.example/1.rdf"), at("a.example/2.rdf")),
    endpoints=(at("a.example/sparql", 10), at("secondary.a.example/sparql")),
)


def kinds(plan):
    return [access.kind for access in plan]


def first_of(dataset, task, draws, down=()):
    """How often each address comes first among those that answer."""
    chance = Random(7)
    plans = (access_plan(dataset, task, chance) for _ in range(draws))
    return Counter(next(each.urls[0] for each in plan if each.urls[0] not in down) for plan in plans)


def test_a_whole_copy_takes_the_dump_first_and_dereferences_last():
    plan = access_plan(PAPER, "whole", Random(1))
    assert kinds(plan) == ["dump", "dump", "fragments", "sparql", "sparql", "dereference"]
    assert plan[-1].urls == (P,)


def test_the_update_of_one_iri_never_loads_a_dump():
    plan = access_plan(PAPER, "one", Random(1), iri=P + "1")
    assert kinds(plan) == ["dereference", "sparql", "sparql"]
    assert plan[0].urls == (P + "1",)


def test_the_update_of_one_iri_wants_to_know_which():
    with pytest.raises(ValueError, match="wants an iri"):
        access_plan(PAPER, "one", Random(1))


def test_a_query_goes_to_the_endpoint_and_never_dereferences_everything():
    assert kinds(access_plan(PAPER, "query", Random(1))) == ["sparql", "sparql", "dump", "dump", "fragments"]


def test_every_attempt_says_why():
    assert all(access.why for access in access_plan(PAPER, "whole", Random(1)))


def test_a_dataset_without_any_access_gives_no_attempts():
    assert access_plan(SemanticDataset(label="x"), "whole", Random(1)) == []


def test_the_secondary_endpoint_is_drawn_once_in_eleven_times():
    drawn = first_of(PAPER, "query", DRAWS)
    assert abs(drawn["http://secondary.a.example/sparql"] - 1000) <= 91
    assert drawn.total() == DRAWS


def test_priorities_of_dumps_and_endpoints_are_drawn_apart():
    dumps = (at("a.example/d", 1), at("b.example/d", 1))
    drawn = first_of(SemanticDataset(dumps=dumps, endpoints=PAPER.endpoints), "whole", DRAWS)
    assert abs(drawn["http://a.example/d"] - DRAWS / 2) <= 157


def test_of_those_left_after_a_failure_the_draw_is_by_their_priorities():
    endpoints = (at("a.example/s", 5), at("b.example/s", 3), at("c.example/s", 1))
    drawn = first_of(SemanticDataset(endpoints=endpoints), "query", 10_000, down={"http://a.example/s"})
    assert abs(drawn["http://c.example/s"] - 2500) <= 130


def test_a_mirror_of_priority_zero_is_not_used_while_the_primary_is_up():
    assert first_of(PAPER, "whole", 1000) == {"http://a.example/dump.rdf": 1000}


def test_a_mirror_of_priority_zero_is_used_whenever_the_primary_is_down():
    drawn = first_of(PAPER, "whole", 1000, down={"http://a.example/dump.rdf"})
    assert drawn == {"http://backup.a.example/dump.rdf": 1000}


def test_a_mirror_of_priority_zero_waits_for_every_other_one():
    mirrors = (at("z.example/d", 0), at("a.example/d", 1), at("b.example/d", 1))
    for seed in range(100):
        plan = access_plan(SemanticDataset(dumps=mirrors), "whole", Random(seed))
        assert plan[-1].urls == ("http://z.example/d",)


def test_mirrors_that_all_have_priority_zero_are_used():
    mirrors = (at("a.example/d", 0), at("b.example/d", 0))
    assert len(access_plan(SemanticDataset(dumps=mirrors), "whole", Random(1))) == 2


def test_every_mirror_has_its_turn_once():
    mirrors = tuple(at(f"m{n}.example/d", n) for n in range(20))
    plan = access_plan(SemanticDataset(dumps=mirrors), "whole", Random(1))
    assert sorted(access.urls for access in plan) == sorted((each.url,) for each in mirrors)


def test_the_same_chance_gives_the_same_plan():
    assert access_plan(PAPER, "whole", Random(3)) == access_plan(PAPER, "whole", Random(3))


@pytest.mark.parametrize(
    ("dumps", "parts"),
    [
        ([at("a/shop.rdf.gz"), at("a/products.rdf.gz")], 2),
        ([at("a/d?part=1"), at("a/d?part=2")], 2),
        ([at("a/dump.nt"), at("b/dump.nt")], 1),
        ([at("a/shop.rdf", 1), at("a/products.rdf")], 1),
        ([at("a/1.nt"), at("b/1.nt"), at("a/2.nt")], 2),
        ([at("a/d")], 1),
        ([], 0),
    ],
)
def test_dumps_of_different_names_without_a_priority_are_parts(dumps, parts):
    assert len(dump_parts(dumps)) == parts


def test_parts_are_one_attempt():
    dataset = SemanticDataset(dumps=(at("a/shop.rdf"), at("a/products.rdf")))
    [access] = access_plan(dataset, "whole", Random(1))
    assert (access.kind, access.urls) == ("dump", ("http://a/shop.rdf", "http://a/products.rdf"))


def test_parts_with_mirrors_take_one_mirror_of_each():
    dataset = SemanticDataset(dumps=(at("a/1.nt"), at("b/1.nt"), at("a/2.nt")))
    first, second = access_plan(dataset, "whole", Random(1))
    assert {first.urls[0], second.urls[0]} == {"http://a/1.nt", "http://b/1.nt"}
    assert first.urls[1] == second.urls[1] == "http://a/2.nt"


def test_fragments_are_one_attempt():
    [access] = access_plan(SemanticDataset(fragments=PAPER.fragments), "whole", Random(1))
    assert access.urls == ("http://a.example/1.rdf", "http://a.example/2.rdf")


@pytest.mark.parametrize(
    "dataset",
    [
        SemanticDataset(fragments=PAPER.fragments),
        SemanticDataset(dumps=(at("a.example/1.rdf"), at("a.example/2.rdf"))),
    ],
)
def test_a_whole_of_which_one_part_may_not_be_used_is_not_used(dataset):
    assert access_plan(dataset, "whole", Random(1), among=frozenset({"http://a.example/1.rdf"})) == []


def test_places_that_may_not_be_used_are_left_out():
    among = frozenset({"http://a.example/dump.rdf", "http://secondary.a.example/sparql"})
    plan = access_plan(PAPER, "whole", Random(1), among=among)
    assert [access.urls for access in plan] == [(url,) for url in sorted(among)]


def test_mirrors_stay_mirrors_when_the_one_with_a_priority_may_not_be_used():
    dataset = SemanticDataset(dumps=(at("a/x"), at("a/y"), at("b/z", 0)))
    plan = access_plan(dataset, "whole", Random(1), among=frozenset({"http://a/x", "http://a/y"}))
    assert sorted(access.urls for access in plan) == [("http://a/x",), ("http://a/y",)]


def test_no_more_mirrors_are_tried_than_make_sense():
    mirrors = tuple(at(f"m{n}.example/d") for n in range(10_000))
    assert len(access_plan(SemanticDataset(dumps=mirrors), "whole", Random(1))) == MOST_MIRRORS
