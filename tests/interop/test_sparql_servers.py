"""Endpoints of real servers, copied by `tamias crawl` and compared as graphs with what was loaded.

With every test run: Fuseki, small. `make nightly`: all of them, at full size, beside a
plain loop of LIMIT and OFFSET.
"""

import os
import re
import subprocess
import sys
import time
from datetime import datetime

import naive
import pytest
from graphs import as_graph, dataset
from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad, RdfFormat, parse, serialize
from servers import blazegraph, comunica, fuseki, oxigraph, rdf4j, rdflib_endpoint, virtuoso

FULL = bool(os.environ.get("TAMIAS_NIGHTLY"))
XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
PROV = "http://www.w3.org/ns/prov#"
SMALL = 600, 8
MIDDLE = 6_000, 100
LARGE = 150_000, 500


def double(text):
    return Literal(text, datatype=NamedNode(f"{XSD}double"))


def decimal(text):
    return Literal(text, datatype=NamedNode(f"{XSD}decimal"))


NORMALISED = {
    "Fuseki, union": {
        Literal(f"{10**40}", datatype=NamedNode(f"{XSD}integer")): Literal(
            "-5047021154770878464", datatype=NamedNode(f"{XSD}integer")
        )
    },
    "oxigraph": {double("1.5E300"): double("15" + "0" * 299)},
    "rdflib-endpoint": {double("1.5E300"): double("1.5e+300")},
    "Virtuoso": {
        double("1.5E300"): double("1.5e+300"),
        Literal(f"{10**40}", datatype=NamedNode(f"{XSD}integer")): decimal("INF"),
        Literal(f"-{10**18}", datatype=NamedNode(f"{XSD}integer")): decimal(f"-{10**18}"),
        decimal("0." + "123456789" * 4): decimal("0.123456789123457"),
        Literal("<p>one</p>", datatype=NamedNode(f"{RDF}XMLLiteral")): Literal("<p>one</p>"),
    },
}
"""Literals that a server itself changes when it is loaded, and to what."""

SERVERS = {
    "Fuseki": (fuseki, {}, LARGE, True),
    "Fuseki, union": (fuseki, {"union": True}, LARGE, True),
    "rdflib-endpoint": (rdflib_endpoint, {}, MIDDLE, True),
    "RDF4J": (rdf4j, {}, LARGE, True),
    "Blazegraph": (blazegraph, {}, LARGE, True),
    "Comunica": (comunica, {}, MIDDLE, True),
    "Virtuoso": (virtuoso, {}, LARGE, True),
    "Virtuoso, password": (virtuoso, {"password": True}, MIDDLE, True),
    "oxigraph": (oxigraph, {}, LARGE, False),
}


def expected_quads(text, name, endpoint):
    """What the endpoint shows of the loaded quads."""
    changed = NORMALISED.get(name.partition(", password")[0], {})
    quads = [
        Quad(quad.subject, quad.predicate, changed.get(quad.object, quad.object), quad.graph_name)
        for quad in parse(text, format=RdfFormat.N_QUADS)
    ]
    if endpoint.nameless is not None:
        nameless = NamedNode(endpoint.nameless)
        return [
            Quad(
                q.subject, q.predicate, q.object, nameless if q.graph_name == DefaultGraph() else q.graph_name
            )
            for q in quads
        ]
    if endpoint.hides_default:
        return [quad for quad in quads if quad.graph_name != DefaultGraph()]
    if not endpoint.union:
        return quads
    named = {quad.triple for quad in quads if quad.graph_name != DefaultGraph()}
    return [quad for quad in quads if quad.graph_name != DefaultGraph() or quad.triple not in named]


def copied(endpoint, folder):
    """The exported quads of a crawl of the endpoint, what was said of it, and the seconds it took.

    The seconds are those of the whole command, which makes a database first, and of the visit alone.
    """
    tamias = [sys.executable, "-m", "tamias"]
    environment = dict(os.environ)
    if endpoint.login:
        user, password = endpoint.login
        file = folder.parent / "credentials.toml"
        file.write_text(
            f'[[credentials]]\nurl = "{endpoint.url}"\nuser = "{user}"\npassword = "{password}"\n'
        )
        file.chmod(0o600)
        environment["TAMIAS_FETCH__CREDENTIALS"] = str(file)
    crawl = ["crawl", "--data", folder, f"sparql:{endpoint.url}", "--depth", "0", "--workers", "1"]
    options = ["--delay", "0", "--no-robots", "--allow-private"]
    began = time.perf_counter()
    done = subprocess.run(
        [*tamias, *crawl, *options],
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
        env=environment,
    )
    seconds = time.perf_counter() - began
    assert done.returncode == 0, done.stderr
    export = subprocess.run(
        [*tamias, "export", "--data", folder, "--format", "nquads"], capture_output=True, check=True
    )
    metadata = subprocess.run(
        [*tamias, "export", "--data", folder, "--format", "nquads", "--graph", "metadata"],
        capture_output=True,
        check=True,
    )
    said = list(parse(metadata.stdout, format=RdfFormat.N_QUADS))
    reasons = [quad.object.value for quad in said if quad.predicate.value.endswith("reason")]
    began, ended = (
        datetime.fromisoformat(quad.object.value)
        for name in ("startedAtTime", "endedAtTime")
        for quad in said
        if quad.predicate.value == PROV + name
    )
    visit = (ended - began).total_seconds()
    return list(parse(export.stdout, format=RdfFormat.N_QUADS)), reasons, (seconds, visit)


def as_served(quads, url):
    """The exported quads as the server has them: its default graph is the one with the endpoint's name.

    The graph of the service description is ours, and those of `openlinksw.com` are in every Virtuoso.
    """
    described = NamedNode(f"{url}#service-description")
    return [
        Quad(q.subject, q.predicate, q.object, DefaultGraph()) if q.graph_name == NamedNode(url) else q
        for q in quads
        if q.graph_name != described and "openlinksw.com" not in str(q.graph_name)
    ]


def graph_of(quads):
    return as_graph(serialize(quads, format=RdfFormat.N_QUADS).splitlines())


@pytest.mark.parametrize("name", SERVERS if FULL else ["Fuseki"])
def test_an_endpoint_is_copied_exactly_as_a_graph(name, started, table, tmp_path):
    module, options, size, required = SERVERS[name]
    endpoint = started(module, name, required=required, **options)
    text = dataset(*(size if FULL else SMALL))
    source = tmp_path / "data.nq"
    source.write_text(text, encoding="utf-8")
    endpoint.load(source)
    plain = 0, 0.0
    if FULL and endpoint.login is None:
        plain = naive.copy(endpoint.url, tmp_path / "naive.nq", union=endpoint.union)
    quads, reasons, seconds = copied(endpoint, tmp_path / "data")
    (reason,) = reasons
    expected = graph_of(expected_quads(text, name, endpoint))
    got = graph_of(as_served(quads, endpoint.url))
    requests = re.search(r"in ([\d,]+) requests", reason)[1]
    verdict = "EXACT" if got == expected else "NOT EXACT"
    table.append(
        f"{name:<18}{expected.total():>10,}{got.total():>10,}  {verdict:<10}{requests:>9}"
        f"{seconds[0]:>9.1f}{seconds[1]:>9.1f}{f'{plain[1]:.1f} ({plain[0]})':>12}"
    )
    assert (list(expected - got)[:5], list(got - expected)[:5]) == ([], [])
    assert reason.startswith("copied whole"), reason
