"""RDF in figures: triples, distinct subjects and objects, classes, properties. Memory is bounded."""

from collections import Counter
from pathlib import Path

from pyoxigraph import DefaultGraph, NamedNode, Quad

from tamias.content.formats import load_analyser
from tamias.features.tables.encoding import encoding_in
from tamias.features.tables.joins import Distinct
from tamias.features.tables.limits import ProfileLimit, ProfileRun
from tamias.model.document import Document, LimitExceeded
from tamias.model.finding import Problem, Quads
from tamias.model.profile import StatementCounts, TermUsage
from tamias.protocols import Analyser

BASE = "http://profile.invalid/"
"""Relative references are counted, not stored."""

_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_MOST_TERMS = 10_000
"""Classes, properties and graphs that are distinguished."""


class StatementReader:
    """Reads one RDF document."""

    def __init__(self, path: Path, run: ProfileRun) -> None:
        self._path = path
        self._run = run
        self._triples = 0
        self._subjects, self._objects = Distinct(), Distinct()
        self._classes: Counter[str] = Counter()
        self._properties: Counter[str] = Counter()
        self._graphs: set[str] = set()
        self._complete = True

    def read(self, media_type: str) -> StatementCounts:
        """The figures of all that could be read."""
        try:
            self._read(media_type)
        except (ProfileLimit, LimitExceeded) as limit:
            self._complete = False
            self._run.problems.append(str(limit))
        return StatementCounts(
            triples=self._triples,
            subjects=self._subjects.count,
            objects=self._objects.count,
            graphs=len(self._graphs),
            class_count=len(self._classes),
            property_count=len(self._properties),
            classes=self._most(self._classes),
            properties=self._most(self._properties),
            complete=self._complete,
        )

    def _read(self, media_type: str) -> None:
        if self._path.stat().st_size > self._run.limits.bytes:
            raise ProfileLimit(f"more than {self._run.limits.bytes} bytes, not read (limit profile.bytes)")
        with self._path.open("rb") as file:
            charset = encoding_in(self._path, None, 1024).name
            wide = charset if "xml" in media_type and charset.startswith("utf-16") else None
            document = Document(url=BASE, stream=file, media_type=media_type, charset=wide)
            made = load_analyser(media_type)
            if made is None:
                raise ProfileLimit(f"no analyser reads {media_type}")
            analyser: Analyser = made()
            for finding in analyser.analyse(document):
                self._run.check()
                if isinstance(finding, Quads):
                    for quad in finding.quads:
                        self._count(quad)
                elif isinstance(finding, Problem):
                    self._note(finding)

    def _count(self, quad: Quad) -> None:
        self._triples += 1
        self._subjects.add(quad.subject)
        self._objects.add(quad.object)
        predicate = quad.predicate.value
        _add(self._properties, predicate)
        if predicate == _TYPE and isinstance(quad.object, NamedNode):
            _add(self._classes, quad.object.value)
        if not isinstance(quad.graph_name, DefaultGraph) and len(self._graphs) < _MOST_TERMS:
            self._graphs.add(str(quad.graph_name))

    def _note(self, problem: Problem) -> None:
        self._complete = False
        if len(self._run.problems) < self._run.limits.problems:
            place = "" if problem.line is None else f"line {problem.line}: "
            self._run.problems.append(place + problem.what)

    def _most(self, counts: Counter[str]) -> tuple[TermUsage, ...]:
        ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        return tuple(TermUsage(iri[:1000], count) for iri, count in ordered[: self._run.limits.usages])


def _add(counts: Counter[str], iri: str) -> None:
    if iri in counts or len(counts) < _MOST_TERMS:
        counts[iri] += 1
