"""Three readers of one file: ours, raptor's rapper, Jena's riot. Each gives statements and its complaint."""

import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from graphs import as_graph
from lxml import etree
from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, parse, serialize
from servers.packages import maven, program

import tamias

BASE = "http://example.org/files/"
LANGUAGES = {
    ".nt": ("ntriples", "N-Triples"),
    ".nq": ("nquads", "N-Quads"),
    ".ttl": ("turtle", "Turtle"),
    ".n3": ("turtle", "Turtle"),
    ".trig": ("trig", "TriG"),
    ".rdf": ("rdfxml", "RDF/XML"),
    ".owl": ("rdfxml", "RDF/XML"),
    ".jsonld": (None, "JSON-LD"),
}
"""By file ending: what rapper and riot call it."""
_XML_LITERAL = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#XMLLiteral")
_JAR = "org.apache.jena:jena-fuseki-server:4.10.0:jar"
_RIOT = Path(__file__).with_name("Riot.java")


class RdfFile(NamedTuple):
    """A file of a suite, and what a server would call it."""

    path: Path
    place: str
    name: str


def rdf_files(suite: Path) -> Iterator[RdfFile]:
    """By their endings; histories have that of their folder, and XML counts where it has RDF/XML in it."""
    for path in sorted(each for each in suite.rglob("*") if each.is_file()):
        name = path.name
        if name.isdigit():
            name += path.parent.suffix
        elif path.suffix == ".xml" and b"<rdf:RDF" in path.read_bytes()[:2000]:
            name += ".rdf"
        if Path(name).suffix in LANGUAGES:
            yield RdfFile(path, path.relative_to(suite).as_posix(), name)


class Result(NamedTuple):
    """What a reader made of a file."""

    graph: Counter[bytes]
    problem: str | None
    """The first thing it complained of."""


def ours(file: Path, name: str) -> Result:
    """Through the public function, as `tamias read FILE` does."""
    reading = tamias.read(file, base=BASE + name)
    written = serialize(reading.quads, format=RdfFormat.N_QUADS)
    problem = next((str(each) for each in reading.problems), None)
    return Result(_graph(written), problem)


def _graph(written: bytes) -> Counter[bytes]:
    """A reader's N-Quads in one spelling: escapes, lower-case language tags, XML literals by their value."""
    lines = []
    for line in written.splitlines():
        try:
            quads = [_by_value(each) for each in parse(line, format=RdfFormat.N_QUADS, lenient=True)]
            lines += serialize(quads, format=RdfFormat.N_QUADS).splitlines()
        except SyntaxError:
            lines.append(line)
    return as_graph(dict.fromkeys(lines))


def _by_value(quad: Quad) -> Quad:
    """RDF 1.1 Concepts, 5.2: two XML literals are the same value when their nodes are, however written."""
    literal = quad.object
    if not (isinstance(literal, Literal) and literal.datatype == _XML_LITERAL):
        return quad
    try:
        canonical = etree.canonicalize(f"<x>{literal.value}</x>")
    except etree.XMLSyntaxError:
        return quad
    return Quad(quad.subject, quad.predicate, Literal(canonical, datatype=_XML_LITERAL), quad.graph_name)


def rapper(file: Path, name: str) -> Result | None:
    """None for what rapper does not read."""
    language = LANGUAGES[Path(name).suffix][0]
    if language is None:
        return None
    words = [program("rapper"), "-q", "-i", language, "-o", "nquads", str(file), BASE + name]
    done = subprocess.run(words, capture_output=True, timeout=60, check=False)
    said = done.stderr.decode(errors="replace").strip()
    return Result(_graph(done.stdout), (said or "exit code") if done.returncode else None)


class Riot:
    """Jena's reader, one process for all files."""

    def __init__(self, process: "subprocess.Popen[str]", folder: Path) -> None:
        self._process = process
        self._output = folder / "riot.nq"

    def read(self, file: Path, name: str) -> Result:
        task = [str(file), LANGUAGES[Path(name).suffix][1], BASE + name, str(self._output)]
        self._process.stdin.write("\t".join(task) + "\n")
        self._process.stdin.flush()
        said = self._process.stdout.readline().strip()
        return Result(_graph(self._output.read_bytes()), None if said == "ok" else said)


@contextmanager
def riot(folder: Path) -> Iterator[Riot]:
    words = [program("java"), "-cp", str(maven(_JAR)), str(_RIOT)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        yield Riot(process, folder)
        process.stdin.close()
