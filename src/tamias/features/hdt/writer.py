"""Writes triples as an HDT file. Holds the whole graph in memory: about 300 bytes for each triple."""

from array import array
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import BinaryIO

import msgspec
import numpy as np
from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from tamias.features.hdt.layout import (
    BITMAP_TRIPLES,
    BY_SUBJECT,
    DICTIONARY,
    FOUR_SECTIONS,
    GLOBAL,
    HEADER,
    N_TRIPLES,
    TRIPLES,
    VERSION_1,
    Flags,
    Numbers,
    bitmap,
    control,
    log_array,
    section,
)

_STRING = "http://www.w3.org/2001/XMLSchema#string"
_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_VOID = "http://rdfs.org/ns/void#"

Term = NamedNode | BlankNode | Literal | Triple


class TooManyTriples(Exception):
    """The error for more triples than may be held in memory."""


class Written(msgspec.Struct, frozen=True):
    """Statistics of a written file."""

    triples: int
    """Distinct ones in the file."""
    left_out: int
    """Those that HDT cannot say: a triple as an object, a NUL in a literal."""


def write_hdt(triples: Iterable[Triple], out: BinaryIO, *, name: str, most: int) -> Written:
    """Writes a graph; `name` is the IRI of the data set in the header.

    Raises `TooManyTriples` for more than `most`, before anything is written.
    """
    numbers, terms = _gathered(triples, most)
    strings = [hdt_string(term) for term in terms]
    sayable = np.array([string is not None for string in strings], dtype=np.bool_)
    said = numbers[sayable[numbers].all(axis=1)] if len(numbers) else numbers
    dictionary = _Dictionary([string or b"" for string in strings], said)
    graph = dictionary.translated(said)
    out.writelines(chain(_opening(name, dictionary, len(graph)), dictionary.parts(), _triples(graph)))
    return Written(len(graph), len(numbers) - len(said))


def hdt_string(term: Term) -> bytes | None:
    """A term as HDT writes it: N-Triples without escapes, and without brackets around an IRI."""
    if isinstance(term, NamedNode):
        text = term.value
        return None if text.startswith(("_:", '"')) or "\0" in text else text.encode()
    if isinstance(term, BlankNode):
        return f"_:{term.value}".encode()
    if isinstance(term, Literal):
        return None if "\0" in term.value else f'"{term.value}"{_suffix(term)}'.encode()
    return None


def _suffix(literal: Literal) -> str:
    if literal.language:
        return f"@{literal.language}" + (f"--{literal.direction.value}" if literal.direction else "")
    datatype = literal.datatype.value
    return "" if datatype == _STRING else f"^^<{datatype}>"


def _gathered(triples: Iterable[Triple], most: int) -> tuple[Numbers, list[Term]]:
    """The triples as numbers of their terms, in the order in which these came."""
    known: dict[Term, int] = {}
    number = known.setdefault
    rows = array("q")
    for count, (subject, predicate, value) in enumerate(triples):
        if count == most:
            raise TooManyTriples
        rows.append(number(subject, len(known)))
        rows.append(number(predicate, len(known)))
        rows.append(number(value, len(known)))
    return np.frombuffer(rows, dtype=np.int64).reshape(-1, 3), list(known)


class _Dictionary:
    """The terms in their four sections, and their new numbers."""

    def __init__(self, strings: list[bytes], numbers: Numbers) -> None:
        self._strings = strings
        subjects, predicates, objects = (self._among(numbers[:, place]) for place in range(3))
        shared = self._sorted(subjects & objects)
        only_subjects, only_objects = self._sorted(subjects & ~objects), self._sorted(objects & ~subjects)
        self._sections = (shared, only_subjects, self._sorted(predicates), only_objects)
        self._subjects = self._numbered(np.concatenate((shared, only_subjects)))
        self._predicates = self._numbered(self._sections[2])
        self._objects = self._numbered(np.concatenate((shared, only_objects)))

    @property
    def counts(self) -> dict[str, int]:
        """Return the counts by their names in VoID."""
        shared, subjects, predicates, objects = map(len, self._sections)
        return {
            "properties": predicates,
            "distinctSubjects": shared + subjects,
            "distinctObjects": shared + objects,
        }

    def parts(self) -> Iterator[bytes]:
        size = sum(len(self._strings[term]) for part in self._sections for term in part.tolist())
        yield control(DICTIONARY, FOUR_SECTIONS, {"mapping": 1, "sizeStrings": size})
        for part in self._sections:
            yield from section([self._strings[term] for term in part.tolist()])

    def translated(self, numbers: Numbers) -> Numbers:
        """The triples in the numbers of the file, sorted and without repeats."""
        places = (self._subjects, self._predicates, self._objects)
        rows = np.stack([place[numbers[:, column]] for column, place in enumerate(places)], axis=1)
        rows = rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))]
        return rows[_differs(rows)]

    def _among(self, column: Numbers) -> Flags:
        found = np.zeros(len(self._strings), dtype=np.bool_)
        found[column] = True
        return found

    def _sorted(self, chosen: Flags) -> Numbers:
        terms = np.flatnonzero(chosen).tolist()
        return np.array(sorted(terms, key=self._strings.__getitem__), dtype=np.int64)

    def _numbered(self, terms: Numbers) -> Numbers:
        numbers = np.zeros(len(self._strings), dtype=np.int64)
        numbers[terms] = np.arange(1, len(terms) + 1)
        return numbers


def _opening(name: str, dictionary: _Dictionary, triples: int) -> Iterator[bytes]:
    counts = {"triples": triples, **dictionary.counts}
    lines = [
        f"<{name}> <{_TYPE}> <http://purl.org/HDT/hdt#Dataset> .",
        f"<{name}> <{_TYPE}> <{_VOID}Dataset> .",
        *(f'<{name}> <{_VOID}{word}> "{count}" .' for word, count in counts.items()),
    ]
    header = "".join(f"{line}\n" for line in lines).encode()
    yield control(GLOBAL, VERSION_1, {})
    yield control(HEADER, N_TRIPLES, {"length": len(header)})
    yield header


def _triples(rows: Numbers) -> Iterator[bytes]:
    new_pair = _differs(rows[:, :2])
    pairs = rows[new_pair]
    yield control(TRIPLES, BITMAP_TRIPLES, {"order": BY_SUBJECT})
    yield from bitmap(_before(_differs(pairs[:, :1])))
    yield from bitmap(_before(new_pair))
    yield from log_array(pairs[:, 1])
    yield from log_array(rows[:, 2])


def _differs(rows: Numbers) -> Flags:
    """Return for each row whether it differs from the one before."""
    first = np.ones(min(len(rows), 1), dtype=np.bool_)
    return np.concatenate((first, (rows[1:] != rows[:-1]).any(axis=1)))


def _before(starts: Flags) -> Flags:
    """The last of each run, from the first of each."""
    return np.roll(starts, -1)
