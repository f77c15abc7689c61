"""The Data Web benchmark on tiny webs: the same web from the same seed, all of it found by the executable."""

import http.client
import json
import random
import sys
from collections import deque

import pytest
from click.testing import CliRunner
from pyoxigraph import RdfFormat, parse

from benchmarks.__main__ import command
from benchmarks.dataweb.crawlers.rivals import TAMIAS, CrawlTask, named
from benchmarks.dataweb.plan import (
    DEREFERENCING,
    MIXED,
    WebOptions,
    draw_graph,
    make_plan,
    reach,
    resource_count,
)
from benchmarks.dataweb.run import DataWebSize, run
from benchmarks.dataweb.serving import serving
from benchmarks.dataweb.trial import SCOPE, LoggedRequest, account, attempt, fulfilment, keys, manners, score
from benchmarks.dataweb.web import build_web, check_suite, suite_pages
from benchmarks.measuring.children import free_ports
from tamias.model.errors import UsageError

PORT = 18_800
TINY = WebOptions(nodes=6, weights=MIXED, node_degree=4, triples=90, compressed=0.5)
POLITE = WebOptions(nodes=2, weights=DEREFERENCING, node_degree=2, triples=18, disallowed=0.2, delay=0.5)

WALKER = """
import re, sys, urllib.request
seeds, output = open(sys.argv[1]).read().split(), sys.argv[2]
seen, waiting = set(seeds), list(seeds)
with open(output + "/all.nt", "w") as out:
    while waiting:
        try:
            request = urllib.request.Request(waiting.pop(), headers={"Accept": "application/n-triples"})
            text = urllib.request.urlopen(request).read().decode()
        except OSError:
            continue
        out.write(text)
        new = set(re.findall("<(http://127[^>]*)>", text)) - seen
        seen |= new
        waiting += new
"""


def everything(web):
    return {key for built in web.nodes.values() for key in keys(b"".join(built.truth), RdfFormat.N_TRIPLES)}


def served(web):
    """All answers as bytes, those that depend on the request as their statements."""
    return {
        (address, path): page if isinstance(page, bytes) else getattr(page, "lines", b"")
        for address, built in web.nodes.items()
        for path, page in built.pages.items()
    }


def test_the_same_seed_gives_the_same_web():
    one, other = (build_web(make_plan(TINY), PORT) for _ in range(2))
    assert served(one) == served(other)
    assert [built.truth for built in one.nodes.values()] == [built.truth for built in other.nodes.values()]
    assert one.seeds == other.seeds


def test_another_seed_gives_another_web():
    other = WebOptions(nodes=6, weights=MIXED, seed=7, node_degree=4, triples=90)
    assert everything(build_web(make_plan(TINY), PORT)) != everything(build_web(make_plan(other), PORT))


def test_the_webs_of_the_published_experiments_have_their_size():
    second = build_web(make_plan(WebOptions(nodes=200, weights=DEREFERENCING)), PORT)
    assert (second.resources, second.triples) == (44_600, 202_800)
    first = make_plan(WebOptions(nodes=100, weights=MIXED, compressed=0.3))
    assert sum(len(node.links) for node in first.nodes) == 1000


def test_every_node_can_be_reached_from_the_seeds():
    plan = make_plan(WebOptions(nodes=60, weights=MIXED))
    assert reach([node.links for node in plan.nodes], plan.seeds) == set(range(60))


def test_every_resource_of_a_graph_can_be_reached_from_the_first():
    links = draw_graph(random.Random(3), 1000, 9)
    targets = {}
    for source, target in links:
        targets.setdefault(source, []).append(target)
    seen, waiting = {0}, deque([0])
    while waiting:
        new = set(targets.get(waiting.popleft(), ())) - seen
        seen |= new
        waiting.extend(new)
    assert (len(links), len(seen), resource_count(1000, 9)) == (1004, 223, 223)


def test_a_crawl_of_every_kind_of_node_has_every_triple(tmp_path):
    web = build_web(make_plan(TINY), *free_ports(1))
    found = attempt(web, TAMIAS, CrawlTask(web.seeds, tmp_path / "run", SCOPE), 120)
    assert found.score.by_kind == {kind: (had, had) for kind, (_, had) in found.score.by_kind.items()}, (
        found.score.lost,
        found.fault,
    )
    assert set(found.score.by_kind) == set(MIXED)
    assert found.score.precision == 1.0


@pytest.mark.nightly
def test_a_crawler_named_by_its_command_is_run_and_judged(tmp_path):
    walker = tmp_path / "walker.py"
    walker.write_text(WALKER)
    wish = WebOptions(nodes=3, weights=DEREFERENCING, node_degree=2, triples=20)
    web = build_web(make_plan(wish), *free_ports(1))
    rival = named(f"walker={sys.executable} {walker} {{seeds}} {{output}}")
    found = attempt(web, rival, CrawlTask(web.seeds, tmp_path / "run", SCOPE), 60)
    assert found.score.recall == 1.0, found.fault
    assert found.account.resources == web.resources
    assert found.account.handed_out == web.triples


def test_what_is_not_found_lowers_the_recall_of_its_kind():
    web = build_web(make_plan(TINY), PORT)
    address = next(node.address for node in web.plan.nodes if node.kind == "deref")
    judged = score(web, {key for key in everything(web) if f"/{address}:" not in key.split(" ")[0]})
    assert judged.recall < 1.0
    assert [name for name, (had, expected) in judged.by_kind.items() if had < expected] == ["deref"]


def test_a_statement_that_nobody_made_lowers_precision():
    web = build_web(make_plan(WebOptions(nodes=1, weights=DEREFERENCING, triples=20)), PORT)
    truth = everything(web)
    false = f"<http://{web.plan.nodes[0].address}:18800/x> <http://p.example/> <http://o.example/>"
    assert score(web, truth | {false}).precision == pytest.approx(len(truth) / (len(truth) + 1))


def test_forbidden_resources_and_short_gaps_are_counted():
    web = build_web(make_plan(POLITE), PORT)
    address, built = next(iter(web.nodes.items()))
    forbidden = min(built.disallowed)
    visits = [
        LoggedRequest(0.0, address, "200", "/robots.txt"),
        LoggedRequest(1.0, address, "200", "/dataset-0/resource-0"),
    ]
    visits.append(LoggedRequest(1.25, address, "200", forbidden))
    kept = manners(web, visits)
    assert (kept.disallowed_requested, kept.fulfilment) == (1, (0.5, 0.5, 0.5))
    assert fulfilment(visits[:2], 0.5) is None


@pytest.mark.nightly
def test_robots_txt_is_kept_and_its_delay_too(tmp_path):
    web = build_web(make_plan(POLITE), *free_ports(1))
    found = attempt(web, TAMIAS, CrawlTask(web.seeds, tmp_path / "run", SCOPE, polite=True), 120)
    assert found.score.recall == 1.0, found.fault
    assert found.account.manners.disallowed_requested == 0
    assert found.account.manners.fulfilment[1] >= 0.99


def test_a_document_is_given_in_the_syntax_that_is_asked_for_and_refused_in_others(tmp_path):
    web = build_web(make_plan(WebOptions(nodes=1, weights=DEREFERENCING, triples=20)), *free_ports(1))
    address, built = next(iter(web.nodes.items()))
    with serving(web.pages_at, web.port, tmp_path, processes=1):
        connection = http.client.HTTPConnection(address, web.port, timeout=10)
        said = {}
        for accept in ("application/rdf+xml", "application/ld+json;q=0.5", "image/png"):
            connection.request("GET", "/dataset-0/resource-0", headers={"Accept": accept})
            answer = connection.getresponse()
            said[answer.status, answer.headers["Content-Type"]] = answer.read()
        connection.close()
    triples = built.weights["/dataset-0/resource-0"]
    assert set(said) == {(200, "application/rdf+xml"), (200, "application/ld+json"), (406, None)}
    assert len(list(parse(said[200, "application/rdf+xml"], format=RdfFormat.RDF_XML))) == triples


@pytest.mark.suite("rdfa-test-suite")
def test_the_pages_of_the_rdfa_suite_stand_under_the_address_of_the_node(suites):
    pages = suite_pages(check_suite(suites("rdfa-test-suite")), "http://127.2.0.9:18800/")
    assert len(pages) == 881
    assert not any(b"http://rdfa.info/" in text for _, text, _ in pages)


def test_a_folder_without_the_suite_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"manifest\.jsonld"):
        check_suite(tmp_path)


def test_an_unknown_peer_without_a_command_is_refused():
    with pytest.raises(UsageError, match="NAME=COMMAND"):
        run(("II",), DataWebSize(nodes=1, triples=20), peers=("nobody",))


def test_the_account_counts_each_document_once():
    web = build_web(make_plan(WebOptions(nodes=1, weights=DEREFERENCING, triples=20)), PORT)
    address = web.plan.nodes[0].address
    visits = [LoggedRequest(float(turn), address, "200", "/dataset-0/resource-0") for turn in range(3)]
    told = account(web, visits)
    assert (told.requests, told.resources) == (3, 1)


@pytest.mark.nightly
def test_the_command_prints_the_table_and_judges_recall():
    words = ["dataweb", "--experiment", "II", "--nodes", "2", "--triples", "20", "--peer", "none"]
    said = CliRunner().invoke(command, words).output
    assert "tamias" in said
    assert "target: II: recall at least 1 (1.0000): met" in said
    assert "best peer that finds nearly all: at least 2.5 x: NOT MEASURED" in said


@pytest.mark.nightly
def test_what_programs_get_has_recall_and_pace():
    found = run(("II",), DataWebSize(nodes=2, triples=20), peers=(), out=lambda _line: None)
    (outcome,) = json.loads(json.dumps(found))["experiments"][0]["outcomes"]
    assert outcome["recall"] == 1.0, outcome["fault"]
    assert outcome["resources_per_cpu_second"] > 0
