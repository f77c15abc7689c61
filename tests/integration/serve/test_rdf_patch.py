"""RDF Patch: a store that applies every patch of the feed has what the archive has."""

from collections import Counter

import pytest
from pyoxigraph import CanonicalizationAlgorithm, Dataset, RdfFormat, parse

from tests import commands

from .conftest import START, Filled

PREFIX = b"@prefix e: <http://e.example/> . "
GROUND = [PREFIX + b'e:a e:p "1" .', PREFIX + b'e:a e:p "2" ; e:q e:b .', PREFIX + b"e:a e:q e:b ."]
NESTED = [
    PREFIX + b'e:a e:q [ e:r "old" ], [ e:r "same" ] .',
    PREFIX + b'e:a e:q [ e:r "new" ], [ e:r "same" ] .',
    PREFIX + b'e:a e:q [ e:r "same" ], [ e:r "same" ], [ e:r "new" ] .',
    PREFIX + b'e:a e:q [ e:r "same" ] .',
]
RING = [
    PREFIX + b"[] e:x e:y . _:a e:n _:b . _:b e:n _:c . _:c e:n _:a .",
    PREFIX + b"[] e:x e:y . _:a e:n _:b . _:b e:n _:a . _:c e:n _:d . _:d e:n _:c .",
]
NAMED = [PREFIX + b"e:g { e:a e:p e:o . _:x e:p _:y } e:a e:p _:x .", PREFIX + b"e:h { e:a e:p e:o }"]


class Follower:
    """A store that keeps up with a feed of patches, as its page describes it, and takes nothing twice."""

    def __init__(self, client):
        self.client, self.next, self.rows = client, "/api/v1/changes.rdfp", Counter()

    def follow(self, limit=1000):
        """Apply all patches; return how many rows there were."""
        count, page = 0, f"{self.next}{'&' if '?' in self.next else '?'}limit={limit}"
        while True:
            answer = self.client.get(page)
            assert answer.headers["content-type"] == "application/rdf-patch"
            page = answer.links["next"]["url"]
            assert answer.text.startswith(f"H next <{page}> .\n")
            rows = answer.text.splitlines()[1:]
            count += len(rows)
            self.apply(rows)
            if page == self.next:
                return count
            self.next = page

    def apply(self, rows):
        for row in rows:
            sign, _, statement = row.partition(" ")
            if sign in ("A", "D"):
                self.rows[statement] += 1 if sign == "A" else -1
                assert self.rows[statement] in (0, 1), f"{row}: twice, or not there"
            else:
                assert row in ("TX .", "TC .")

    def quads(self):
        return graph("\n".join(+self.rows))


def graph(text, syntax=RdfFormat.N_QUADS, **words):
    found = Dataset(parse(text, format=syntax, **words))
    found.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
    return found


def only(quads, host):
    found = Dataset(quad for quad in quads if f"//{host}/" in quad.graph_name.value)
    found.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
    return found


@pytest.fixture
def archive(tmp_path):
    filled = Filled(tmp_path)
    yield filled
    filled.close()


@pytest.fixture
def follower(archive, starting):
    import httpx

    with httpx.Client(base_url=starting(archive.data, "--no-crawl").address, timeout=60) as client:
        yield Follower(client)


def expected(url, text, syntax=RdfFormat.TURTLE):
    """What the archive says of the last version, in the graph of its document."""
    quads = parse(text, format=syntax, base_iri=url)
    return "".join(f"{quad.triple!s} <{url}> .\n" for quad in quads)


@pytest.mark.parametrize("versions", [GROUND, NESTED, RING], ids=["ground", "nested", "ring"])
def test_whoever_applies_every_patch_has_the_last_version(archive, follower, versions):
    url = "http://a.example/a.ttl"
    for count in range(1, len(versions) + 1):
        archive.put(url, versions[count - 1], media_type="text/turtle", start=START + count)
        assert follower.follow() > 0
        assert follower.quads() == graph(expected(url, versions[count - 1]))
    assert follower.follow() == 0


def test_pages_of_a_feed_are_the_whole_of_it(archive, follower):
    for number, versions in enumerate((GROUND, NESTED, RING)):
        archive.put(f"http://a.example/{number}.ttl", *versions, media_type="text/turtle")
    archive.put("http://a.example/a.csv", b"a\n1\n", b"a\n2\n")
    follower.follow(limit=2)
    wanted = [
        expected(f"http://a.example/{number}.ttl", versions[-1])
        for number, versions in enumerate((GROUND, NESTED, RING))
    ]
    assert follower.quads() == graph("".join(wanted))


def test_a_graph_that_a_document_names_is_named_as_in_the_archive(archive, follower):
    archive.put("http://a.example/a.trig", *NAMED[:1], media_type="application/trig")
    follower.follow()
    assert {quad.graph_name.value for quad in follower.quads()} == {
        "http://a.example/a.trig",
        "http://a.example/a.trig#graph=http%3A%2F%2Fe.example%2Fg",
    }
    archive.put("http://a.example/a.trig", NAMED[1], media_type="application/trig", start=START + 5)
    follower.follow()
    assert {str(quad) for quad in follower.quads()} == {
        "<http://e.example/a> <http://e.example/p> <http://e.example/o>"
        " <http://a.example/a.trig#graph=http%3A%2F%2Fe.example%2Fh>"
    }


def test_a_version_that_is_no_rdf_any_more_takes_the_statements_away(archive, follower):
    archive.put("http://a.example/a", GROUND[0], media_type="text/turtle")
    archive.put("http://a.example/a", b"<html>", media_type="text/html", start=START + 5)
    follower.follow()
    assert not +follower.rows


def test_an_earlier_version_that_comes_later_changes_nothing(archive, follower):
    url = "http://a.example/a.ttl"
    archive.put(url, GROUND[1], media_type="text/turtle", start=START + 1000)
    follower.follow()
    archive.put(url, GROUND[0], media_type="text/turtle", start=START)
    follower.follow()
    assert follower.quads() == graph(expected(url, GROUND[1]))
    archive.put(url, GROUND[2], media_type="text/turtle", start=START + 2000)
    follower.follow()
    assert follower.quads() == graph(expected(url, GROUND[2]))


def test_statements_of_a_forgotten_version_are_in_no_new_patch(archive, follower, starting):
    url = "http://a.example/a.ttl"
    archive.put(url, *GROUND, media_type="text/turtle")
    done = commands.run(["forget", url, "--version", "2", "--reason", "wrong", "--data", str(archive.data)])
    assert done.returncode == 0, done.stderr
    follower.follow()
    assert '"2"' not in "".join(follower.rows)
    assert follower.quads() == graph(expected(url, GROUND[2]))


def test_hostile_documents_leave_the_feed_whole(archive, follower):
    nodes = [f"_:n{number}" for number in range(60)]
    clique = "\n".join(f"{one} <http://e.example/p> {other} ." for one in nodes for other in nodes)
    archive.put("http://a.example/clique.nt", clique.encode(), media_type="application/n-triples")
    forged = b"<http://e.example/a> <http://e.example/p> <c> <urn:tamias:metadata> . #> ."
    archive.put("http://a.example/forged.nt", forged, media_type="application/n-triples")
    archive.put("http://a.example/a.ttl", GROUND[0], media_type="text/turtle")
    follower.follow()
    assert only(follower.quads(), "a.example") == follower.quads()
    assert "urn:tamias" not in "".join(follower.rows)
    assert graph(expected("http://a.example/a.ttl", GROUND[0])) == graph(
        "\n".join(row for row in +follower.rows if "a.ttl" in row)
    )
