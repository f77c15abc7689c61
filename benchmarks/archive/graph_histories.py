"""A history like BEAR-B's: sizes and queries at a time, beside one graph for each version in Oxigraph.

Patterns are BEAR's lookups: a predicate, or a predicate and an object. Every answer is compared with the
peer's, some with rdflib's.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from io import BytesIO
from mimetypes import guess_type
from pathlib import Path
from random import Random
from statistics import median, quantiles
from typing import Any

import httpx
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
N_TRIPLES = "application/n-triples"
TYPES = {".ttl": "text/turtle", ".rdf": "application/rdf+xml", ".geojson": "application/geo+json"}
"""Media types of files of real histories, by how the names of their folders end."""
Out = Callable[[str], object]
Pattern = tuple[str, str | None]
"""A predicate, and an object."""


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


def run(versions: int, triples: int, queries: int, data: Path, out: Out = print) -> dict[str, Any]:
    """Measure sizes and times; `ok` if targets are met and all answers are equal."""
    states = list(graph_versions(versions, triples))
    bodies = ["".join(f"{line}\n" for line in state).encode() for state in states]
    out(f"{versions} versions, {sum(map(len, bodies)):,} bytes of N-Triples")
    captures = [(DOCUMENT, _day(number), N_TRIPLES, body) for number, body in enumerate(bodies)]
    loaded = _timed(lambda: _load(data, captures))
    before = _sizes(data)
    repacked = _timed(lambda: _tamias(data, "repack", "--after", "0"))
    after = _sizes(data)
    out(f"bytes in blobs/ and rdf/: {before[0]:,} + {before[1]:,}; repacked {after[0]:,} + {after[1]:,}")
    out(f"loaded in {loaded:.1f} s, repacked in {repacked:.1f} s")
    peer = ox.Store(str(data.parent / "peer"))
    peer_seconds = _timed(lambda: _load_peer(peer, states))
    size = sum(path.stat().st_size for path in (data.parent / "peer").rglob("*") if path.is_file())
    out(f"one graph a version in Oxigraph: {size:,} bytes, loaded in {peer_seconds:.1f} s")
    chance = Random(2)
    wanted = [_query(chance, states) for _ in range(queries)]
    times: dict[str, list[float]] = {}
    equal = _ask_service(data, wanted, peer, times, out)
    equal &= _look_up(data, wanted, states, peer, times, out)
    for name, seconds in times.items():
        out(f"{name:<24} p50, p99: {_percentiles(seconds)} ms")
    targets = [
        BenchmarkTarget("answers are equal to the peer's and rdflib's", str(equal), equal),
        BenchmarkTarget("blobs/ and rdf/ take at most 2 MB", f"{sum(after):,}", sum(after) <= 2_000_000),
        *(_in_time(name, seconds) for name, seconds in times.items() if not name.startswith("Oxigraph")),
    ]
    sizes = {"before": before, "after": after, "oxigraph": size}
    return {"sizes": sizes, "times": times, **report_targets(targets, out)}


def _percentiles(seconds: Sequence[float]) -> str:
    return f"{1000 * median(seconds):.2f}, {1000 * quantiles(seconds, n=100)[98]:.2f}"


def _in_time(name: str, seconds: Sequence[float]) -> BenchmarkTarget:
    is_met = median(seconds) <= 0.02 and quantiles(seconds, n=100)[98] <= 0.2
    return BenchmarkTarget(f"{name}: p50 at most 20 ms, p99 at most 200", _percentiles(seconds), is_met)


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _tamias(data: Path, *words: str) -> None:
    command = [sys.executable, "-m", "tamias", *words, "--data", str(data)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=3600)
    if done.returncode:
        raise SystemExit(f"tamias {words[0]}: {done.stderr[-500:]}")


def _load(data: Path, captures: Iterable[tuple[str, int, str, bytes]]) -> None:
    """Import captures: URL, time, media type and body of each."""
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


def run_real(place: Path, data: Path, out: Out = print) -> dict[str, Any]:
    """Measure what real histories take: archived bodies, and their statements beside them."""
    data.mkdir()
    _load(data, _real_captures(place))
    before = _sizes(data)
    _tamias(data, "repack", "--after", "0")
    after = _sizes(data)
    out(f"real histories, bytes in blobs/ and rdf/: {before[0]:,} + {before[1]:,}; "
        f"repacked {after[0]:,} + {after[1]:,}")  # fmt: skip
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


def _sizes(data: Path) -> tuple[int, int]:
    blobs, rdf = (
        sum(path.stat().st_size for path in (data / name).iterdir() if path.suffix != ".lock")
        for name in ("blobs", "rdf")
    )
    return blobs, rdf


def _load_peer(store: ox.Store, states: Sequence[list[str]]) -> None:
    for number, state in enumerate(states):
        store.bulk_load("\n".join(state).encode(), ox.RdfFormat.N_TRIPLES, to_graph=_graph(number))
    store.optimize()
    store.flush()


def _graph(number: int) -> ox.NamedNode:
    return ox.NamedNode(f"urn:version:{number}")


def _query(chance: Random, states: Sequence[list[str]]) -> tuple[Pattern, int, int]:
    """A lookup with the times of two versions: whole milliseconds within them."""
    _, predicate, rest = chance.choice(chance.choice(states)).split(" ", 2)
    pattern = predicate, rest.removesuffix(" .") if chance.random() < 0.8 else None
    old, new = (_day(chance.randrange(len(states))) + chance.randrange(DAY) for _ in range(2))
    return pattern, old, new


def _ask_service(
    data: Path,
    wanted: Sequence[tuple[Pattern, int, int]],
    peer: ox.Store,
    times: dict[str, list[float]],
    out: Out,
) -> bool:
    """VM in SPARQL over HTTP; once to warm up, then timed. Return whether all answers are the peer's."""
    (port,) = free_ports(1)
    options = ["--no-crawl", "--port", str(port), "--data", str(data)]
    command = [sys.executable, "-m", "tamias", "serve", *options]
    equal = True
    with running(command, ready=lambda: answers(port, "/sparql")), httpx.Client(timeout=60.0) as client:
        for name in ("first, cold", "VM by HTTP"):
            spent = []
            for pattern, at, _ in wanted:
                group = f"?s {pattern[0]} {pattern[1] or '?o'}"
                query = f"SELECT * {{ GRAPH <{DOCUMENT}> {{ {group} }} }}"
                started = time.perf_counter()
                words = {"query": query, "at": rfc3339(at)}
                done = client.get(f"http://127.0.0.1:{port}/sparql", params=words)
                spent.append(time.perf_counter() - started)
                done.raise_for_status()
                rows = json.loads(done.content)["results"]["bindings"]
                found = {tuple(sorted((key, each["value"]) for key, each in row.items())) for row in rows}
                equal &= found == _asked(peer, _graph((at - FIRST) // DAY), group)
            if name != "first, cold":
                times[name] = spent
            out(f"{name}: {len(spent)} queries, median {1000 * median(spent):.1f} ms")
    return equal


def _asked(peer: ox.Store, graph: ox.NamedNode, group: str) -> set[tuple[tuple[str, str], ...]]:
    names = [name for name in ("o", "s") if f"?{name}" in group]
    rows = peer.query(f"SELECT * {{ {group} }}", default_graph=graph)
    return {tuple((name, row[name].value) for name in names) for row in rows}  # type: ignore[union-attr]


def _look_up(
    data: Path, wanted: Sequence[tuple[Pattern, int, int]], states: Sequence[list[str]], peer: Any,
    times: dict[str, list[float]], out: Out,
) -> bool:  # fmt: skip
    """VM, DM and VQ by `Archive.graph_history`, beside the peer; VM also beside rdflib."""
    equal = True
    with tamias.Archive(data) as archive:
        started = time.perf_counter()
        history = archive.graph_history(DOCUMENT)
        out(f"history made in {time.perf_counter() - started:.2f} s")

        def timed(name: str, work: Callable[..., Any], *words: Any) -> Any:
            started = time.perf_counter()
            found = work(*words)
            times.setdefault(name, []).append(time.perf_counter() - started)
            return found

        def changes_of_peer(terms: Any, graphs: Sequence[ox.NamedNode]) -> tuple[set[ox.Triple], ...]:
            was, now = (_triples(peer.quads_for_pattern(*terms, graph)) for graph in graphs)
            return now - was, was - now

        def matches_of_peer(*pattern: Any) -> list[ox.Quad]:
            return [*peer.quads_for_pattern(*pattern)]

        for (predicate, value), old, new in wanted:
            terms = None, _term(predicate), _term(value) if value else None
            moments = datetime.fromtimestamp(old / 1000, UTC), datetime.fromtimestamp(new / 1000, UTC)
            graphs = [_graph((at - FIRST) // DAY) for at in (old, new)]
            vm = timed("VM by graph_history", history.at, moments[0], terms)
            equal &= _triples(vm) == _triples(timed("Oxigraph VM", matches_of_peer, *terms, graphs[0]))
            dm = timed("DM by graph_history", history.changes, *moments, terms)
            equal &= tuple(map(_triples, dm)) == timed("Oxigraph DM", changes_of_peer, terms, graphs)
            vq = timed("VQ by graph_history", history.versions, terms)
            held = timed("Oxigraph VQ", matches_of_peer, *terms, None)
            numbers = {(quad.triple, int(quad.graph_name.value.rpartition(":")[2])) for quad in held}
            equal &= _held(vq, history.times) == numbers
        return equal & _as_rdflib(history, wanted, states)


def _as_rdflib(history: Any, wanted: Sequence[tuple[Pattern, int, int]], states: Sequence[list[str]]) -> bool:
    """Compare 200 lookups with rdflib over the version, each version parsed once."""
    number, graph = -1, Graph()
    for (predicate, value), at, _ in sorted(wanted[:200], key=lambda each: each[1]):
        if (at - FIRST) // DAY != number:
            number = (at - FIRST) // DAY
            graph = Graph().parse(data="\n".join(states[number]) + "\n", format="nt")
        group = f"?s {predicate} ?o" + (f" . FILTER (sameTerm(?o, {value}))" if value else "")
        found = graph.query(f"CONSTRUCT {{ ?s {predicate} ?o }} {{ {group} }}").serialize(format="nt") or b""
        terms = None, _term(predicate), _term(value) if value else None
        ours = history.at(datetime.fromtimestamp(at / 1000, UTC), terms)
        if _triples(ours) != _triples(ox.parse(found, format=ox.RdfFormat.N_TRIPLES)):
            return False
    return True


def _term(text: str) -> Any:
    quad = next(iter(ox.parse(f"<urn:s> <urn:p> {text} .", format=ox.RdfFormat.N_TRIPLES)))
    return quad.object


def _triples(quads: Any) -> set[ox.Triple]:
    return {quad.triple for quad in quads}


def _held(found: Any, times: Sequence[datetime]) -> set[tuple[ox.Triple, int]]:
    return {
        (quad.triple, number)
        for quad, spans in found
        for begin, end in spans
        for number in range(times.index(begin), len(times) if end is None else times.index(end))
    }
