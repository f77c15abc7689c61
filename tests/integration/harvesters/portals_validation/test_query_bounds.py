"""The answer to a CONSTRUCT that names more than is followed."""

from urllib.parse import quote

from tamias.features.sparql_copy import query_source
from tamias.features.sparql_copy.query_source import QueryHarvester
from tamias.model.finding import Links
from tests.messages import unsaid


def test_so_many_iris_of_an_answer_are_followed_and_the_reason_says_so(portal, harvest, monkeypatch):
    monkeypatch.setattr(query_source, "MOST_NAMED", 100)
    lines = "".join(
        f"<http://a.example/{n}> <http://a.example/p> <http://b.example/{n}> .\n" for n in range(20_000)
    )
    portal.serve = lambda path, query: (200, {"Content-Type": "application/n-triples"}, lines.encode())
    query = quote("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }")
    harvested = harvest(QueryHarvester(), f"/sparql?query={query}")
    findings = [each for step in harvested.steps for each in step.findings]
    followed = sum(len(each.references) for each in findings if isinstance(each, Links))
    assert 100 <= followed < 20_000
    assert "20,000 statements" in harvested.end.reason
    assert not unsaid(harvested.end.reason, "100")
