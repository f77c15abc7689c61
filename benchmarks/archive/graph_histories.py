"""A history like BEAR-B's: its size, and lookups at a time, beside stores of versions that others wrote.

Lookups are BEAR's: a predicate, or a predicate and an object, in one version (VM), between two (DM), or in
all (VQ). Every answer is compared with the lines of the versions, and 200 queries in SPARQL with rdflib.
"""

import json
import shutil
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from io import BytesIO
from mimetypes import guess_type
from pathlib import Path
from random import Random
from statistics import median, quantiles
from typing import Any

import httpx
import msgspec
import pyoxigraph as ox
from rdflib import Graph
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

import tamias
from benchmarks.measuring.children import answers, free_ports, running
from benchmarks.measuring.targets import BenchmarkTarget, report_targets
from tamias.archive.moments import rfc3339

DOCUMENT = "http://bear.example/instant.nt"
FIRST = 1_440_374_400_000
DAY = 86_400_000
PREDICATES = 60
CHANGED = 0.01
SPARQL_QUERIES = 200
N_TRIPLES = "application/n-triples"
TYPES = {".ttl": "text/turtle", ".rdf": "application/rdf+xml", ".geojson": "application/geo+json"}
"""Media types of files of real histories, by how the names of their folders end."""
_SECONDS = 7200
_PEERS = Path(__file__).parent / "peers"
Out = Callable[[str], object]
Lookup = tuple[str, str | None, int, int]
"""A predicate, an object or None, and the numbers of two versions, the older first."""
Found = dict[str, list[set[str]]]
"""Lines of N-Triples by kind of lookup: of DM with + or - before them, of VQ with versions behind them."""
Peers = tuple[Path | None, Path | None]
"""Folders with the package of OSTRICH for node, and with the libraries of hdt-java."""


class Measured(msgspec.Struct):
    """One system: what it stores, how long it took to load, and its answers with the seconds of each."""

    name: str
    bytes: int
    load: float
    times: dict[str, list[float]] = {}
    answers: Found = {}

    def ask(self, kind: str, form: Callable[[Any], set[str]], look: Callable[..., Any], *words: Any) -> None:
        """Time a lookup; its answer is put into lines afterwards."""
        started = time.perf_counter()
        found = look(*words)
        self.times.setdefault(kind, []).append(time.perf_counter() - started)
        self.answers.setdefault(kind, []).append(form(found))


def graph_versions(versions: int, triples: int, seed: int = 1) -> Iterator[list[str]]:
    """The sorted lines of each version, of which one in a hundred differs from the version before."""
    chance = Random(seed)
    lines = [_line(chance) for _ in range(triples)]
    for _ in range(versions):
        yield sorted(set(lines))
        for _ in range(int(triples * CHANGED)):
            lines[chance.randrange(triples)] = _line(chance)


def _line(chance: Random) -> str:
    subject = f"<http://dbpedia.example/resource/Thing_{chance.randrange(3000)}>"
    predicate = f"<http://dbpedia.example/ontology/property{chance.randrange(PREDICATES)}>"
    if chance.random() < 0.5:
        value = f"<http://dbpedia.example/resource/Thing_{chance.randrange(3000)}>"
    else:
        value = f'"{chance.randrange(100_000)}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    return f"{subject} {predicate} {value} ."


def run(
    versions: int, triples: int, queries: int, data: Path, peers: Peers = (None, None), out: Out = print
) -> dict[str, Any]:
    """Measure sizes and times; `ok` if targets are met and all answers are equal."""
    states = list(graph_versions(versions, triples))
    bodies = ["".join(f"{line}\n" for line in state).encode() for state in states]
    out(f"{versions} versions, {sum(map(len, bodies)):,} bytes of N-Triples")
    captures = ((DOCUMENT, _day(n), N_TRIPLES, body) for n, body in enumerate(bodies))
    loaded, repacked, before, after = _load_and_repack(data, captures)
    out(f"bytes in blobs/ and rdf/: {before[0]:,} + {before[1]:,}; repacked {after[0]:,} + {after[1]:,}")
    out(f"imported in {loaded:.1f} s, repacked in {repacked:.1f} s")
    chance = Random(2)
    wanted = [_lookup(chance, states) for _ in range(queries)]
    expected = _expected(states, wanted)
    ours = Measured("Archive.graph_history", sum(after), loaded + repacked)
    _look_up(data, wanted, ours, out)
    systems = [
        ours,
        _oxigraph(data.parent / "oxigraph", states, wanted),
        *_others(data.parent, states, wanted, peers, out),
    ]
    for each in systems:
        times = "; ".join(f"{kind} {_percentiles(each.times[kind])}" for kind in ("VM", "DM", "VQ"))
        out(f"{each.name:<24} {each.bytes:>12,} bytes, loaded in {each.load:.1f} s; p50, p99 in ms: {times}")
    service = _ask_service(data, wanted, states, expected, out)
    for each in systems:
        for kind, found in each.answers.items():
            wrong = sum(theirs != lines for theirs, lines in zip(found, expected[kind], strict=True))
            out(f"{each.name}, {kind}: {len(found) - wrong} of {len(found)} answers are those of the lines")
    targets = [
        BenchmarkTarget("our answers are those of the lines", "", ours.answers == expected),
        BenchmarkTarget("blobs/ and rdf/ take at most 2 MB", f"{sum(after):,}", sum(after) <= 2_000_000),
        *(_in_time(f"{kind} by graph_history", seconds) for kind, seconds in ours.times.items()),
        *service,
    ]
    measured = [
        {"name": each.name, "bytes": each.bytes, "load": each.load, "times": each.times} for each in systems
    ]
    return {"sizes": {"before": before, "after": after}, "systems": measured, **report_targets(targets, out)}


def _percentiles(seconds: Sequence[float]) -> str:
    return f"{1000 * median(seconds):.2f}, {1000 * quantiles(seconds, n=100)[98]:.2f}"


def _in_time(name: str, seconds: Sequence[float]) -> BenchmarkTarget:
    is_met = median(seconds) <= 0.02 and quantiles(seconds, n=100)[98] <= 0.2
    return BenchmarkTarget(f"{name}: p50 at most 20 ms, p99 at most 200", _percentiles(seconds), is_met)


def _run(what: str, command: Sequence[str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_SECONDS)
    if done.returncode:
        raise SystemExit(f"{what}: {done.stderr[-500:]}")


def _tamias(data: Path, *words: str) -> None:
    _run(f"tamias {words[0]}", [sys.executable, "-m", "tamias", *words, "--data", str(data)])


def _load_and_repack(
    data: Path, captures: Iterable[tuple[str, int, str, bytes]]
) -> tuple[float, float, tuple[int, int], tuple[int, int]]:
    """Import captures (URL, time, media type and body of each); seconds of both and sizes after each."""
    started = time.perf_counter()
    warc = data.parent / "history.warc"
    with warc.open("wb") as file:
        writer = WARCWriter(file, gzip=False)
        for url, at, media_type, body in captures:
            head = StatusAndHeaders("200 OK", [("Content-Type", media_type)], protocol="HTTP/1.1")
            fields = {"WARC-Date": rfc3339(at)}
            writer.write_record(writer.create_warc_record(
                url, "response", payload=BytesIO(body), http_headers=head, warc_headers_dict=fields
            ))  # fmt: skip
    _tamias(data, "import", str(warc), "--archive")
    warc.unlink()
    loaded, before = time.perf_counter() - started, _sizes(data)
    started = time.perf_counter()
    _tamias(data, "repack", "--after", "0")
    return loaded, time.perf_counter() - started, before, _sizes(data)


def run_real(place: Path, data: Path, out: Out = print) -> dict[str, Any]:
    """Measure what real histories take: archived bodies, and their statements beside them."""
    data.mkdir()
    _, repacked, before, after = _load_and_repack(data, _real_captures(place))
    out(f"real histories, bytes in blobs/ and rdf/: {before[0]:,} + {before[1]:,}; "
        f"repacked in {repacked:.1f} s {after[0]:,} + {after[1]:,}")  # fmt: skip
    ratio = sum(after) / after[0]
    target = BenchmarkTarget(
        "at most 1.3 times the archived bodies", f"{ratio:.2f}", ratio <= 1.3 and before != after
    )
    return {"sizes": {"before": before, "after": after}, **report_targets([target], out)}


def _real_captures(place: Path) -> Iterator[tuple[str, int, str, bytes]]:
    for folder in sorted(each for each in place.iterdir() if each.is_dir()):
        media_type = TYPES.get(folder.suffix) or guess_type(folder.name)[0] or "text/plain"
        for number, path in enumerate(sorted(folder.iterdir())):
            yield f"http://real.example/{folder.name}", _day(number), media_type, path.read_bytes()


def _day(number: int) -> int:
    return FIRST + number * DAY


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")


def _sizes(data: Path) -> tuple[int, int]:
    return _size(data / "blobs"), _size(data / "rdf")


def _lookup(chance: Random, states: Sequence[list[str]]) -> Lookup:
    _, predicate, rest = chance.choice(chance.choice(states)).split(" ", 2)
    old, new = sorted(chance.sample(range(len(states)), 2))
    return predicate, rest.removesuffix(" .") if chance.random() < 0.8 else None, old, new


def _expected(states: Sequence[list[str]], wanted: Sequence[Lookup]) -> Found:
    by_predicate: list[dict[str, set[str]]] = [defaultdict(set) for _ in states]
    for number, state in enumerate(states):
        for line in state:
            by_predicate[number][line.split(" ", 2)[1]].add(line)
    found: Found = {"VM": [], "DM": [], "VQ": []}
    for predicate, value, old, new in wanted:
        end = f" {value} ." if value else ""
        fitting = [{line for line in each[predicate] if line.endswith(end)} for each in by_predicate]
        found["VM"].append(fitting[old])
        found["DM"].append(_changed(fitting[new] - fitting[old], fitting[old] - fitting[new]))
        found["VQ"].append(_numbered((line, n) for n, lines in enumerate(fitting) for line in lines))
    return found


def _changed(added: Iterable[str], removed: Iterable[str]) -> set[str]:
    return {f"+{line}" for line in added} | {f"-{line}" for line in removed}


def _lines(quads: Iterable[Any]) -> set[str]:
    return {f"{quad.triple} ." for quad in quads}


def _terms(predicate: str, value: str | None) -> tuple[None, Any, Any]:
    (quad,) = ox.parse(f"<urn:s> {predicate} {value or '<urn:o>'} .", format=ox.RdfFormat.N_TRIPLES)
    return None, quad.predicate, quad.object if value else None


def _look_up(data: Path, wanted: Sequence[Lookup], ours: Measured, out: Out) -> None:
    with tamias.Archive(data) as archive:
        started = time.perf_counter()
        history = archive.graph_history(DOCUMENT)
        out(f"history made in {time.perf_counter() - started:.2f} s")

        times: list[datetime | None] = [*history.times, None]
        for predicate, value, *versions in wanted:
            terms = _terms(predicate, value)
            old, new = (datetime.fromtimestamp((_day(each) + DAY // 2) / 1000, UTC) for each in versions)
            ours.ask("VM", _lines, history.at, old, terms)
            ours.ask("DM", lambda pair: _changed(*map(_lines, pair)), history.changes, old, new, terms)
            ours.ask("VQ", lambda found: _numbered(_held(found, times)), history.versions, terms)


def _held(found: Any, times: Sequence[datetime | None]) -> Iterator[tuple[str, int]]:
    for quad, spans in found:
        for begin, end in spans:
            yield from ((f"{quad.triple} .", each) for each in range(times.index(begin), times.index(end)))


def _numbered(held: Iterable[tuple[str, int]]) -> set[str]:
    """Lines, each with the numbers of its versions."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for line, number in held:
        numbers[line].append(number)
    return {line + " ".join(map(str, sorted(some))) for line, some in numbers.items()}


def _oxigraph(folder: Path, states: Sequence[list[str]], wanted: Sequence[Lookup]) -> Measured:
    """One graph a version."""
    store = ox.Store(str(folder))
    graphs = [ox.NamedNode(f"urn:version:{number}") for number in range(len(states))]

    started = time.perf_counter()
    for graph, state in zip(graphs, states, strict=True):
        store.bulk_load("\n".join(state).encode(), ox.RdfFormat.N_TRIPLES, to_graph=graph)
    store.optimize()
    store.flush()
    seconds = time.perf_counter() - started
    found = Measured("graphs in Oxigraph", _size(folder), seconds)

    def look(terms: Any, graph: ox.NamedNode | None) -> list[ox.Quad]:
        subject, predicate, value = terms
        return [*store.quads_for_pattern(subject, predicate, value, graph)]

    def compare(terms: Any, old: ox.NamedNode, new: ox.NamedNode) -> tuple[set[ox.Triple], ...]:
        was, now = ({quad.triple for quad in look(terms, graph)} for graph in (old, new))
        return now - was, was - now

    for predicate, value, old, new in wanted:
        terms = _terms(predicate, value)
        found.ask("VM", _lines, look, terms, graphs[old])
        found.ask("DM", lambda pair: _changed(*({f"{each} ." for each in some} for some in pair)),
                  compare, terms, graphs[old], graphs[new])  # fmt: skip
        found.ask("VQ", lambda quads: _numbered(
            (f"{quad.triple} .", int(quad.graph_name.value.rpartition(":")[2])) for quad in quads
        ), look, terms, None)  # fmt: skip
    return found


def _others(
    folder: Path, states: Sequence[list[str]], wanted: Sequence[Lookup], peers: Peers, out: Out
) -> Iterator[Measured]:
    """Peers that are programs of their own: each loads files, times its lookups, and writes a file."""
    ostrich, hdt = peers
    java = ["java", "-cp", f"{hdt}/*", str(_PEERS / "Hdt.java")]
    commands = {
        "OSTRICH": (ostrich, ["node", str(_PEERS / "ostrich.js"), str(ostrich)]),
        "HDT, each version": (hdt, [*java, "IC"]),
        "HDT, changes": (hdt, [*java, "CB"]),
    }
    for name, (place, command) in commands.items():
        if place is None:
            out(f"{name}: skipped, its folder was not named")
            continue
        shutil.rmtree(work := folder / "peer", ignore_errors=True)
        work.mkdir()
        for number, state in enumerate(states):
            (work / f"{number:04}.nt").write_text("".join(f"{line}\n" for line in state))
        (work / "queries.json").write_text(json.dumps(wanted))
        _run(name, [*command, str(work)])
        found = json.loads((work / "result.json").read_bytes())
        lines = {kind: [set(each) for each in some] for kind, some in found["answers"].items()}
        yield Measured(name, _size(work / "store"), found["load"], found["times"], lines)


def _ask_service(
    data: Path, wanted: Sequence[Lookup], states: Sequence[list[str]], expected: Found, out: Out
) -> list[BenchmarkTarget]:
    """VM in SPARQL over HTTP, once to warm up and then timed; and other queries beside rdflib."""
    (port,) = free_ports(1)
    options = ["--no-crawl", "--port", str(port), "--data", str(data)]
    command = [sys.executable, "-m", "tamias", "serve", *options]

    def ask(query: str, number: int) -> Any:
        words = {"query": query, "at": rfc3339(_day(number) + chance.randrange(DAY))}
        done = client.get(f"http://127.0.0.1:{port}/sparql", params=words)
        done.raise_for_status()
        return json.loads(done.content)

    chance, equal = Random(3), True
    spent: list[float] = []
    with running(command, ready=lambda: answers(port, "/sparql")), httpx.Client(timeout=60.0) as client:
        for name in ("first, cold", "VM by HTTP"):
            spent = []
            for (predicate, value, old, _), lines in zip(wanted, expected["VM"], strict=True):
                query = f"SELECT ?s ?o {{ GRAPH <{DOCUMENT}> {{ ?s {predicate} {value or '?o'} }} }}"
                started = time.perf_counter()
                rows = ask(query, old)["results"]["bindings"]
                spent.append(time.perf_counter() - started)
                equal &= len(rows) == len(lines)
            out(f"{name}: {len(spent)} queries, p50, p99 in ms: {_percentiles(spent)}")
        same = list(_as_rdflib(chance, wanted, states, ask))
    out(f"/sparql?at= and rdflib over the version: {sum(same)} of {len(same)} queries have the same rows")
    return [
        _in_time("VM by HTTP", spent),
        BenchmarkTarget(
            "all answers over HTTP are the lines' and rdflib's", f"{sum(same)}", equal and all(same)
        ),
    ]


def _as_rdflib(
    chance: Random, wanted: Sequence[Lookup], states: Sequence[list[str]], ask: Callable[[str, int], Any]
) -> Iterator[bool]:
    """Ask random queries of both, each version parsed once; yield whether all rows are the same."""
    graph, parsed = Graph(), -1
    for predicate, value, number, _ in sorted(wanted[:SPARQL_QUERIES], key=lambda each: each[2]):
        if number != parsed:
            graph, parsed = Graph().parse(data="\n".join(states[number]) + "\n", format="nt"), number
        other = f"<http://dbpedia.example/ontology/property{chance.randrange(PREDICATES)}>"
        head, pattern = chance.choice([
            ("SELECT ?s ?o", f"?s {predicate} ?o"),
            ("SELECT ?s ?other", f"?s {predicate} {value or '?o'} . ?s {other} ?other"),
            ("SELECT ?s ?other", f"?s {predicate} {value or '?o'} OPTIONAL {{ ?s {other} ?other }}"),
            ("SELECT DISTINCT ?p", f"?s {predicate} {value or '?o'} . ?s ?p ?x"),
            ("SELECT (COUNT(*) AS ?count)", f"?s {predicate} ?o . ?o ?p ?x"),
            ("SELECT (MAX(?o) AS ?most)", f"?s {predicate} ?o FILTER (isLiteral(?o))"),
            ("SELECT ?s", f"{{ ?s {predicate} ?o }} UNION {{ ?s {other} ?o }} FILTER (?o > 50000)"),
            ("SELECT ?s", f"?s {predicate} ?o MINUS {{ ?s {other} ?any }}"),
        ])  # fmt: skip
        theirs = graph.query(f"{head} {{ {pattern} }}").serialize(format="json") or b""
        ours = ask(f"{head} {{ GRAPH <{DOCUMENT}> {{ {pattern} }} }}", number)
        yield _rows(ours) == _rows(json.loads(theirs))


def _rows(answer: Any) -> Counter[str]:
    return Counter(json.dumps(row, sort_keys=True) for row in answer["results"]["bindings"])
