"""What a sitemap says of another host counts only if that host says it too."""

import pytest

from tamias.archive.sources.claim import authoritative, claims, hosts_to_ask
from tamias.model.site import Location, Prefix, SemanticDataset, covers

A, B = "http://a.example/sitemap.xml", "https://b.example/map.xml"
OWN, MIRROR = "http://a.example/dump.nt", "http://b.example/dump.nt"


def catalogue(*dumps, uri="http://a.example/#catalogue", **more):
    return SemanticDataset(uri=uri, dumps=tuple(Location(url=dump) for dump in dumps), **more)


def test_what_stands_on_the_own_host_counts():
    assert authoritative(catalogue(OWN), A, []) == {OWN}


def test_http_and_https_are_one_host():
    assert authoritative(catalogue("https://a.example/dump.nt"), A, []) == {"https://a.example/dump.nt"}


def test_another_port_is_another_host():
    assert authoritative(catalogue("http://a.example:81/dump.nt"), A, []) == frozenset()


def test_a_claim_about_another_host_does_not_count_by_itself():
    assert authoritative(catalogue(OWN, MIRROR), A, []) == {OWN}


def test_a_claim_about_another_host_counts_when_that_host_says_the_same():
    assert authoritative(catalogue(OWN, MIRROR), A, claims(catalogue(MIRROR), B)) == {OWN, MIRROR}


def test_a_third_host_can_confirm_nothing():
    others = claims(catalogue(MIRROR), "http://c.example/sitemap.xml")
    assert authoritative(catalogue(OWN, MIRROR), A, others) == {OWN}


def test_another_dataset_of_the_other_host_confirms_nothing():
    others = claims(catalogue(MIRROR, uri="http://b.example/#other"), B)
    assert authoritative(catalogue(OWN, MIRROR), A, others) == {OWN}


def test_an_endpoint_does_not_confirm_a_dump():
    other = SemanticDataset(uri="http://a.example/#catalogue", endpoints=(Location(url=MIRROR),))
    assert authoritative(catalogue(OWN, MIRROR), A, claims(other, B)) == {OWN}


def test_the_priority_is_no_part_of_the_statement():
    other = SemanticDataset(uri="http://a.example/#catalogue", dumps=(Location(url=MIRROR, priority=0),))
    assert MIRROR in authoritative(catalogue(OWN, MIRROR), A, claims(other, B))


def test_a_dataset_without_a_uri_is_known_by_its_prefixes():
    prefixes = (Prefix(iri="http://a.example/p/"),)
    mine = catalogue(OWN, MIRROR, uri=None, prefixes=prefixes)
    theirs = catalogue(MIRROR, uri=None, prefixes=prefixes)
    assert MIRROR in authoritative(mine, A, claims(theirs, B))
    assert MIRROR not in authoritative(mine, A, claims(catalogue(MIRROR, uri=None), B))


def test_a_dataset_without_uri_and_prefixes_is_known_by_all_its_locations():
    mine = catalogue(OWN, MIRROR, uri=None)
    assert MIRROR in authoritative(mine, A, claims(catalogue(MIRROR, OWN, uri=None), B))
    assert MIRROR not in authoritative(mine, A, claims(catalogue(MIRROR, uri=None), B))


def test_a_prefix_of_another_host_covers_nothing_by_itself():
    dataset = catalogue(OWN, prefixes=(Prefix(iri="http://a.example/p/"), Prefix(iri="http://b.example/")))
    counted = authoritative(dataset, A, [])
    assert covers(dataset, "http://a.example/p/1", counted)
    assert not covers(dataset, "http://b.example/1", counted)


def test_a_prefix_that_is_no_web_address_belongs_to_nobody():
    assert authoritative(SemanticDataset(prefixes=(Prefix(iri="urn:isbn:"),)), A, []) == frozenset()


@pytest.mark.parametrize(
    "prefix", ["http://a.example", "http://a.example:8", "http://", "http:", "http://a\\"]
)
def test_a_prefix_that_may_be_of_many_hosts_does_not_count(prefix):
    assert authoritative(SemanticDataset(prefixes=(Prefix(iri=prefix),)), A, []) == frozenset()


def test_the_hosts_to_ask_are_the_others():
    assert hosts_to_ask(catalogue(OWN, MIRROR, "http://c.example:81/x"), A) == {"b.example", "c.example:81"}
