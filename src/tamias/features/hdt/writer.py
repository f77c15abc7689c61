"""Writes triples as an HDT file: its words, numbers and checksums, and how its parts are put into bytes.

Holds the whole graph in memory: about 300 bytes for each triple. It is an export of crawled quads, and a
sink with a file for each document.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np
from google_crc32c import extend
from numpy.typing import NDArray
from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from tamias.features.graph_stores.document_files import DocumentFiles
from tamias.model.errors import TamiasError
from tamias.sinks.delivery import GraphSink, Surroundings
from tamias.sinks.export import read_quads

_SLICE = 1 << 24


def crc8(data: bytes) -> bytes:
    """Return the checksum of the few bytes before an array or a section."""
    value = 0
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = ((value << 1) ^ (0x07 if value & 0x80 else 0)) & 0xFF
    return bytes((value,))


def crc16(data: bytes) -> bytes:
    """Return the checksum of a control information."""
    value = 0
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (0xA001 if value & 1 else 0)
    return value.to_bytes(2, "little")


def crc32c(data: memoryview | bytes) -> bytes:
    """Return the checksum of the data of an array or a section."""
    value = 0
    for start in range(0, len(data), _SLICE):
        value = extend(value, bytes(data[start : start + _SLICE]))
    return value.to_bytes(4, "little")


MAGIC = b"$HDT"
GLOBAL, HEADER, DICTIONARY, TRIPLES = 1, 2, 3, 4
VERSION_1 = "<http://purl.org/HDT/hdt#HDTv1>"
N_TRIPLES = "ntriples"
FOUR_SECTIONS = "<http://purl.org/HDT/hdt#dictionaryFour>"
BITMAP_TRIPLES = "<http://purl.org/HDT/hdt#triplesBitmap>"
BY_SUBJECT = "1"
"""The order subject, predicate, object; there are five others, which nobody was seen to use."""

PLAIN, FRONT_CODED = 1, 2
BLOCK = 16
"""Strings from one that is written whole to the next."""

_PACKED_AT_ONCE = 1 << 16

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]


def vbyte(number: int) -> bytes:
    """Seven bits a byte, the lowest first; the high bit marks the last byte.

    >>> vbyte(5), vbyte(128)
    (b'\\x85', b'\\x00\\x81')
    """
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F)
        number >>= 7
    out.append(number | 0x80)
    return bytes(out)


def control(kind: int, form: str, properties: Mapping[str, object]) -> bytes:
    """Return the header of one of the four parts."""
    words = "".join(f"{key}={value};" for key, value in properties.items())
    data = MAGIC + bytes((kind,)) + form.encode() + b"\0" + words.encode() + b"\0"
    return data + crc16(data)


def log_array(numbers: Numbers) -> Iterator[bytes]:
    """Numbers of equal width."""
    width = max(1, int(numbers.max(initial=0)).bit_length())
    yield _begun(bytes((PLAIN, width)) + vbyte(len(numbers)))
    yield from _checked(_packed(numbers, width))


def bitmap(flags: Flags) -> Iterator[bytes]:
    """Yield the bytes of an array with a bit for each flag."""
    yield _begun(bytes((PLAIN,)) + vbyte(len(flags)))
    yield from _checked(iter((np.packbits(flags, bitorder="little").tobytes(),)))


def section(strings: Sequence[bytes]) -> Iterator[bytes]:
    """A part of the dictionary: strings in order, of which only what differs from the one before is kept."""
    buffer, starts = front_coded(strings)
    yield _begun(bytes((FRONT_CODED,)) + vbyte(len(strings)) + vbyte(len(buffer)) + vbyte(BLOCK))
    yield from log_array(np.array(starts, dtype=np.int64))
    yield from _checked(iter((buffer,)))


def front_coded(strings: Sequence[bytes]) -> tuple[bytes, list[int]]:
    """The strings in blocks, and where each block starts, with the end as the last."""
    buffer, starts, previous = bytearray(), [], b""
    for index, string in enumerate(strings):
        if index % BLOCK == 0:
            starts.append(len(buffer))
            buffer += string
        else:
            shared = _shared(previous, string)
            buffer += vbyte(shared)
            buffer += string[shared:]
        buffer.append(0)
        previous = string
    return bytes(buffer), [*starts, len(buffer)]


def _shared(one: bytes, other: bytes) -> int:
    """The length of their common start. As numbers, the first difference is the highest bit of the XOR."""
    size = min(len(one), len(other))
    difference = int.from_bytes(one[:size], "big") ^ int.from_bytes(other[:size], "big")
    return size - (difference.bit_length() + 7) // 8


def _packed(numbers: Numbers, width: int) -> Iterator[bytes]:
    places = np.arange(width, dtype=np.int64)
    for start in range(0, len(numbers), _PACKED_AT_ONCE):
        bits = (numbers[start : start + _PACKED_AT_ONCE, None] >> places) & 1
        yield np.packbits(bits.astype(np.uint8).ravel(), bitorder="little").tobytes()


def _begun(data: bytes) -> bytes:
    return data + crc8(data)


def _checked(pieces: Iterator[bytes]) -> Iterator[bytes]:
    data = b"".join(pieces)
    yield data
    yield crc32c(data)


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


MAX_TRIPLES = 10_000_000
"""At about 300 bytes of memory each, 3 GB."""

_NAME = "urn:tamias:export"
"""What the header of an HDT file calls its data set."""


def export_hdt(chunks: Iterable[bytes], out: BinaryIO, most: int = MAX_TRIPLES) -> int:
    """Write the triples of N-Quads without their graphs; return how many were left out.

    HDT has no triples about triples. It is made in memory: raises `TamiasError` for more than `most`.
    """
    try:
        return write_hdt((quad.triple for quad in read_quads(chunks)), out, name=_NAME, most=most).left_out
    except TooManyTriples:
        raise TamiasError(
            f"HDT is made in memory, and there are more than {most} triples; export another format"
        ) from None


def hdt_files(target: str | None, around: Surroundings) -> GraphSink:
    """Open the sink: files in the folder named, or in `hdt/` of the data directory.

    HDT cannot name graphs: those of one document are one.
    """
    return DocumentFiles(Path(target) if target else around.data / "hdt", {"hdt": ".hdt"}, lambda _: "hdt")
