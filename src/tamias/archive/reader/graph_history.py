"""The history of a crawled graph: each statement once, with the times at which the document held it.

It is made from the stored statements of all states and kept in memory: lookups take milliseconds.
"""

from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import pairwise

import msgspec
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, Triple, parse

from tamias.archive.captures import DocumentState
from tamias.archive.moments import Moment, as_datetime, milliseconds
from tamias.content.blank_nodes import named_lines
from tamias.model.capture import Extent

Term = NamedNode | BlankNode | Literal | Triple
Pattern = tuple[Term | None, NamedNode | None, Term | None]
ANY: Pattern = (None, None, None)


class GraphHistory:
    """The statements of one document at any time. Blank nodes are named by what is said of them."""

    def __init__(self, states: Sequence[DocumentState], read: Callable[[Extent], Iterable[bytes]]) -> None:
        """`read` gives the N-Quads of a state."""
        self._times = [state.read_at for state in states]
        numbers: dict[bytes, int] = {}
        held: dict[int, array[int]] = {}
        # In the order in which they are stored: what several of them share is unpacked once.
        for extent, state in sorted(
            (msgspec.structs.astuple(each.extent), state) for state, each in enumerate(states) if each.extent
        ):
            lines = graph_lines(read(Extent(*extent)))
            held[state] = array("L", (numbers.setdefault(line, len(numbers)) for line in lines))
        runs: list[list[int]] = [[] for _ in numbers]
        before: set[int] = set()
        for state in range(len(states)):
            now = set(held.get(state, ()))
            for changed in now ^ before:
                runs[changed].append(state)
            before = now
        self._runs = dict(zip(numbers, runs, strict=True))
        """For each line in which states it begins to be there and ends, by turns."""
        self._by_term: tuple[dict[bytes, list[bytes]], ...] = (
            defaultdict(list), defaultdict(list), defaultdict(list),
        )  # fmt: skip
        for line in self._runs:
            for terms, term in zip(self._by_term, _terms(line), strict=True):
                terms[term].append(line)

    @property
    def times(self) -> list[datetime]:
        """Return when each state was first seen."""
        return [as_datetime(each) for each in self._times]

    def at(self, moment: Moment, pattern: Pattern = ANY) -> list[Quad]:
        """Return the statements that fit a pattern and were there at a time. None fits every term."""
        return _quads(self._held(self._state(moment), pattern))

    def changes(self, since: Moment, until: Moment, pattern: Pattern = ANY) -> tuple[list[Quad], list[Quad]]:
        """Return the statements that fit a pattern and were added, and those removed, between two times."""
        old, new = (set(self._held(self._state(each), pattern)) for each in (since, until))
        return _quads(new - old), _quads(old - new)

    def versions(self, pattern: Pattern) -> list[tuple[Quad, list[tuple[datetime, datetime | None]]]]:
        """Return each statement that fits a pattern, with the times from and until which it was there."""
        lines = sorted(self._fitting(pattern))
        return [
            (quad, [*self._spans(self._runs[line])]) for line, quad in zip(lines, _quads(lines), strict=True)
        ]

    def _spans(self, run: Sequence[int]) -> Iterator[tuple[datetime, datetime | None]]:
        times: list[datetime | None] = [as_datetime(self._times[number]) for number in run]
        for begin, end in list(pairwise([*times, None]))[::2]:
            assert begin is not None
            yield begin, end

    def _state(self, moment: Moment) -> int:
        return bisect_right(self._times, milliseconds(moment)) - 1

    def _held(self, state: int, pattern: Pattern) -> list[bytes]:
        return [line for line in self._fitting(pattern) if bisect_right(self._runs[line], state) % 2]

    def _fitting(self, pattern: Pattern) -> list[bytes]:
        """Return the lines that have all terms of a pattern."""
        # pyoxigraph writes terms as the stored lines have them.
        named = [(place, str(term).encode()) for place, term in enumerate(pattern) if term is not None]
        if not named:
            return list(self._runs)
        found = min((self._by_term[place].get(term, []) for place, term in named), key=len)
        return [line for line in found if all(_terms(line)[place] == term for place, term in named)]


def graph_lines(chunks: Iterable[bytes]) -> set[bytes]:
    """Return the lines of stored N-Quads; what was forgotten has left empty ones."""
    text = b"".join(chunks)
    lines = set(text.split(b"\n"))
    lines.discard(b"")
    return named_lines(lines) if b"_:" in text else lines


def _terms(line: bytes) -> tuple[bytes, bytes, bytes]:
    """Return subject, predicate and object of a line of N-Quads that has a graph."""
    subject, predicate, rest = line.split(b" ", 2)
    return subject, predicate, rest.rsplit(b" ", 2)[0]


def _quads(lines: Iterable[bytes]) -> list[Quad]:
    """Return the statements in the order of their lines."""
    text = b"".join(line + b"\n" for line in sorted(lines))
    return list(parse(text, format=RdfFormat.N_QUADS, lenient=True))
