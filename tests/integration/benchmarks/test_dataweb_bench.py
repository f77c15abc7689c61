"""The Data Web benchmark on tiny webs: the same web from the same seed, all of it found by the executable."""

import ftplib
import http.client
import io
import json
import os
import sys
from collections import deque

import pytest
from pyoxigraph import RdfFormat, parse

from benchmarks.dataweb.crawlers.rivals import TAMIAS, CrawlTask, named
from benchmarks.dataweb.report.blocks import markdown
from benchmarks.dataweb.report.growth import scaled
from benchmarks.dataweb.run import DataWebSize, run
from benchmarks.dataweb.scale import ScaleOptions, crawl_endless, tenths
from benchmarks.dataweb.serving.serving import serving
from benchmarks.dataweb.trial import SCOPE, attempt, site
from benchmarks.dataweb.truth import keys, score
from benchmarks.dataweb.visits import LoggedRequest, account, fulfilment, manners
from benchmarks.dataweb.web.context import Ports
from benchmarks.dataweb.web.generated import Endless
from benchmarks.dataweb.web.graph import draw_graph, resource_count
from benchmarks.dataweb.web.plan import DEREFERENCING, EVERY_KIND, MIXED, WebOptions, make_plan, reach
from benchmarks.dataweb.web.w3c import check_suite, suite_pages
from benchmarks.dataweb.web.web import build_web
from benchmarks.measuring.ports import free_ports
from benchmarks.measuring.proc import Glance
from tamias.cli.console.plots import Curve, bars
from tamias.model.errors import UsageError

PORTS = Ports(18_800, 18_801)
TINY = WebOptions(nodes=12, weights=EVERY_KIND, node_degree=4, triples=90, compressed=0.5, more_packings=True)
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
    one, other = (build_web(make_plan(TINY), PORTS) for _ in range(2))
    assert served(one) == served(other)
    assert [built.truth for built in one.nodes.values()] == [built.truth for built in other.nodes.values()]
    assert one.seeds == other.seeds


def test_another_seed_gives_another_web():
    other = WebOptions(nodes=12, weights=EVERY_KIND, seed=7, node_degree=4, triples=90)
    assert everything(build_web(make_plan(TINY), PORTS)) != everything(build_web(make_plan(other), PORTS))


def test_the_webs_of_the_published_experiments_have_their_size():
    second = build_web(make_plan(WebOptions(nodes=200, weights=DEREFERENCING)), PORTS)
    assert (second.resources, second.triples) == (44_600, 202_800)
    first = make_plan(WebOptions(nodes=100, weights=MIXED, compressed=0.3))
    assert sum(len(node.links) for node in first.nodes) == 1000


def test_every_node_can_be_reached_from_the_seeds():
    plan = make_plan(WebOptions(nodes=60, weights=MIXED))
    assert reach([node.links for node in plan.nodes], plan.seeds) == set(range(60))


def test_every_resource_of_a_graph_can_be_reached_from_the_first():
    import random

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
    web = build_web(make_plan(TINY), Ports(*free_ports(2)))
    found = attempt(web, TAMIAS, CrawlTask(web.seeds, tmp_path / "run", SCOPE), 120)
    assert found.score.by_kind == {kind: (had, had) for kind, (_, had) in found.score.by_kind.items()}, (
        found.score.lost,
        found.fault,
    )
    assert set(found.score.by_kind) == set(EVERY_KIND)
    assert found.score.precision == 1.0


def test_a_crawler_named_by_its_command_is_run_and_judged(tmp_path):
    walker = tmp_path / "walker.py"
    walker.write_text(WALKER)
    web = build_web(
        make_plan(WebOptions(nodes=3, weights=DEREFERENCING, node_degree=2, triples=20)),
        Ports(*free_ports(2)),
    )
    rival = named(f"walker={sys.executable} {walker} {{seeds}} {{output}}")
    found = attempt(web, rival, CrawlTask(web.seeds, tmp_path / "run", SCOPE), 60)
    assert found.score.recall == 1.0, found.fault
    assert found.account.resources == web.resources
    assert found.account.handed_out == web.triples


def test_what_is_not_found_lowers_the_recall_of_its_kind():
    web = build_web(make_plan(TINY), PORTS)
    address = next(node.address for node in web.plan.nodes if node.kind == "deref")
    judged = score(web, {key for key in everything(web) if f"/{address}:" not in key.split(" ")[0]})
    assert judged.recall < 1.0
    assert [name for name, (had, expected) in judged.by_kind.items() if had < expected] == ["deref"]


def test_a_statement_that_nobody_made_lowers_precision():
    web = build_web(make_plan(WebOptions(nodes=1, weights=DEREFERENCING, triples=20)), PORTS)
    truth = everything(web)
    false = f"<http://{web.plan.nodes[0].address}:18800/x> <http://p.example/> <http://o.example/>"
    assert score(web, truth | {false}).precision == pytest.approx(len(truth) / (len(truth) + 1))


def test_forbidden_resources_and_short_gaps_are_counted():
    web = build_web(make_plan(POLITE), PORTS)
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


def test_robots_txt_is_kept_and_its_delay_too(tmp_path):
    web = build_web(make_plan(POLITE), Ports(*free_ports(2)))
    found = attempt(web, TAMIAS, CrawlTask(web.seeds, tmp_path / "run", SCOPE, polite=True), 120)
    assert found.score.recall == 1.0, found.fault
    assert found.account.manners.disallowed_requested == 0
    assert found.account.manners.fulfilment[1] >= 0.99


def test_a_document_is_given_in_the_syntax_that_is_asked_for_and_refused_in_others(tmp_path):
    web = build_web(make_plan(WebOptions(nodes=1, weights=DEREFERENCING, triples=20)), Ports(*free_ports(2)))
    address, built = next(iter(web.nodes.items()))
    with serving(lambda asked: site(web, asked), web.ports, tmp_path, processes=1):
        connection = http.client.HTTPConnection(address, web.ports.http, timeout=10)
        said = {}
        for accept in ("application/rdf+xml", "application/ld+json;q=0.5", "image/png"):
            connection.request("GET", "/dataset-0/resource-0", headers={"Accept": accept})
            answer = connection.getresponse()
            said[answer.status, answer.headers["Content-Type"]] = answer.read()
        connection.close()
    triples = built.weights["/dataset-0/resource-0"]
    assert set(said) == {(200, "application/rdf+xml"), (200, "application/ld+json"), (406, None)}
    assert len(list(parse(said[200, "application/rdf+xml"], format=RdfFormat.RDF_XML))) == triples


def test_a_version_that_is_known_is_not_given_again_until_it_changes(tmp_path):
    wish = WebOptions(nodes=1, weights=DEREFERENCING, triples=20, changing=1.0)
    web = build_web(make_plan(wish), Ports(*free_ports(2)))
    address = web.plan.nodes[0].address
    with serving(lambda asked: site(web, asked), web.ports, tmp_path, processes=1) as servers:
        connection = http.client.HTTPConnection(address, web.ports.http, timeout=10)
        connection.request("GET", "/dataset-0/resource-1")
        first = connection.getresponse()
        first.read()
        statuses = []
        for epoch in (0, 1):
            servers.epoch.value = epoch
            connection.request(
                "GET", "/dataset-0/resource-1", headers={"If-None-Match": first.headers["ETag"]}
            )
            answer = connection.getresponse()
            answer.read()
            statuses.append(answer.status)
        connection.close()
    assert statuses == [304, 200]


def test_files_can_be_had_from_the_ftp_node(tmp_path):
    web = build_web(make_plan(TINY), Ports(*free_ports(2)))
    address = next(node.address for node in web.plan.nodes if node.kind == "ftp")
    trees = {address: web.nodes[address].files}
    with serving(lambda asked: site(web, asked), web.ports, tmp_path, trees=trees, processes=1):
        got = io.BytesIO()
        with ftplib.FTP(timeout=10) as ftp:
            ftp.connect(address, web.ports.ftp)
            ftp.login()
            names = {name for name, _ in ftp.mlsd("/a")}
            ftp.cwd("/a")
            ftp.retrbinary("RETR /a/b/deep file.ttl.gz", got.write)
    assert names == {"b", "middle.rdf"}
    assert got.getvalue() == trees[address]["/a/b/deep file.ttl.gz"]


def test_every_page_of_the_endless_web_is_linked_from_another():
    web = Endless(500, 7, PORTS)
    linked = {target for page in range(500) for target in web.targets(page)}
    assert linked | {0} == set(range(500))


def test_the_tenths_of_a_crawl_tell_pace_and_processor_time():
    glances = [
        Glance(float(second), {}, {"postgres": second / 10, "worker": second / 5}) for second in range(6)
    ]
    found = tenths([turn / 20 for turn in range(100)], glances)
    assert [round(each.pages_per_second) for each in found[:-1]] == [20] * 9
    assert [round(each.cpu_ms) for each in found[:-1]] == [15] * 9
    assert [round(each.database_ms) for each in found[:-1]] == [5] * 9


def test_a_crawl_of_a_few_pages_has_no_tenths():
    assert tenths([0.0, 1.0], []) == []


def test_the_scale_run_goes_on_in_a_frontier_that_was_filled(tmp_path):
    found = crawl_endless(
        Endless(60, 5, Ports(*free_ports(2))), tmp_path / "scale", ScaleOptions(60.0, known=90)
    )
    assert (found.first.fetched, found.first.complete, found.put) == (60, True, 30)
    assert found.second.fetched >= 30, found.second.fault
    said = markdown(list(scaled(found)))
    assert "after 30 more URLs" in said
    assert "came to its end" in said


def test_a_crawl_whose_time_was_over_is_not_at_fault(tmp_path):
    found = crawl_endless(
        Endless(10_000_000, 5, Ports(*free_ports(2))), tmp_path / "scale", ScaleOptions(3.0)
    )
    assert (found.first.fault, found.first.complete, found.second) == ("", False, None)


def test_bars_stand_for_every_place_and_crawler():
    drawn = bars(
        ("dump", "rdfa"), [Curve("one", [(0, 1.0), (1, 0.5)]), Curve("two", [(0, 0.0), (1, 1.0)])], "recall"
    )
    assert drawn.count("<rect") == 4 + 1  # and the ground they stand on
    assert "rdfa" in drawn


@pytest.mark.suite("rdfa-test-suite")
def test_the_pages_of_the_rdfa_suite_stand_under_the_address_of_the_node(suites):
    pages = suite_pages(check_suite(suites("rdfa-test-suite")), "http://127.2.0.9:18800/")
    assert len(pages) == 881
    assert not any(b"http://rdfa.info/" in text for _, text, _ in pages)


def test_a_folder_without_the_suite_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"manifest\.jsonld"):
        check_suite(tmp_path)


def test_the_report_has_tables_plots_and_the_published_rows(tmp_path):
    said = []
    size = DataWebSize(nodes=2, triples=20)
    found = run(
        ("II",),
        size,
        peers=(),
        report=tmp_path / "report",
        profile=True,
        out=said.append,
        command="python -m benchmarks dataweb --experiment II",
    )
    page = (tmp_path / "report" / "report.html").read_text()
    text = (tmp_path / "report" / "report.md").read_text()
    assert "<svg" in page
    assert "Squirrel W18" in text
    assert "Where Tamias's processor time went" in text
    assert "The largest costs, and what was done about them" in text
    assert "python -m benchmarks dataweb --experiment II" in text
    assert "In what this differs from ORCA" in text
    assert {"II-triples.svg", "II-cpu.svg", "II-memory.svg"} <= set(os.listdir(tmp_path / "report"))
    assert json.loads(json.dumps(found))["experiments"][0]["outcomes"][0]["recall"] == 1.0


def test_what_changed_is_found_by_the_second_crawl(tmp_path):
    found = run(
        ("recrawl",), DataWebSize(nodes=2, triples=40), peers=(), data=tmp_path, out=lambda _line: None
    )
    (again,) = found["experiments"][0]["again"]
    assert again["recall"] == 1.0, again["fault"]
    assert again["account"]["not_modified"] > 0


def test_an_unknown_peer_without_a_command_is_refused():
    with pytest.raises(UsageError, match="NAME=COMMAND"):
        run(("II",), DataWebSize(nodes=1, triples=20), peers=("nobody",))


def test_the_account_counts_each_document_once():
    web = build_web(make_plan(WebOptions(nodes=1, weights=DEREFERENCING, triples=20)), PORTS)
    address = web.plan.nodes[0].address
    visits = [LoggedRequest(float(turn), address, "200", "/dataset-0/resource-0") for turn in range(3)]
    told = account(web, visits, 0.0)
    assert (told.requests, told.resources) == (3, 1)
