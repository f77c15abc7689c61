"""Sorts the N-Quads of one document by graph. Memory grows with the number of graphs, not of quads."""

import re
from array import array
from collections.abc import Iterable, Iterator
from tempfile import SpooledTemporaryFile
from typing import Self

from tamias.model.errors import TamiasError

MEMORY_BYTES = 8 * 1024 * 1024
"""Triples of one document that are kept in memory while they are sorted; the rest waits in a file."""

_PIECE = 1024 * 1024
_END = re.compile(rb' (<[A-Za-z][^\x00-\x20<>"{}|^`\\]*>) \.\n\Z')


class NoQuad(TamiasError):
    """A line does not end with the name of a graph."""


class SortedGraphs:
    """The triples of one document, graph by graph."""

    def __init__(self, nquads: Iterable[bytes]) -> None:
        self._file = SpooledTemporaryFile(max_size=MEMORY_BYTES)  # noqa: SIM115 - closed by `close`
        self._runs: dict[bytes, array[int]] = {}
        self._length = 0
        try:
            for lines in whole_lines(nquads):
                self._sort(lines)
        except BaseException:
            self.close()
            raise

    @property
    def names(self) -> list[str]:
        """The graphs, in the order of the document."""
        return [graph[1:-1].decode() for graph in self._runs]

    def __contains__(self, name: str) -> bool:
        return f"<{name}>".encode() in self._runs

    def triples(self, name: str) -> Iterator[bytes]:
        """The N-Triples of a graph, whole lines in pieces; none for a graph that is not there."""
        runs = self._runs.get(f"<{name}>".encode(), array("q"))
        for start, length in zip(runs[::2], runs[1::2], strict=True):
            self._file.seek(start)
            yield from whole_lines(self._pieces(length))

    def close(self) -> None:
        """Lets go of what was sorted."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _pieces(self, length: int) -> Iterator[bytes]:
        while length:
            piece = self._file.read(min(length, _PIECE))
            length -= len(piece)
            yield piece

    def _sort(self, lines: bytes) -> None:
        if not lines:
            return
        graph, end = _graph_of(lines)
        if lines.count(end) == lines.count(b"\n"):  # a newline inside a literal is escaped
            self._append(graph, lines.replace(end, b" .\n"))
            return
        for line in lines.split(b"\n")[:-1]:
            if not line.endswith(end[:-1]):
                graph, end = _graph_of(line + b"\n")
            self._append(graph, line[: 1 - len(end)] + b" .\n")

    def _append(self, graph: bytes, triples: bytes) -> None:
        runs = self._runs.setdefault(graph, array("q"))
        if runs and runs[-2] + runs[-1] == self._length:
            runs[-1] += len(triples)
        else:
            runs.extend((self._length, len(triples)))
        self._file.write(triples)
        self._length += len(triples)


def whole_lines(chunks: Iterable[bytes], longest: int | None = None) -> Iterator[bytes]:
    """The same bytes, cut only behind line ends. Raises `ValueError` for a line of more bytes."""
    rest: list[bytes] = []
    held = 0
    for chunk in chunks:
        end = chunk.rfind(b"\n") + 1
        if end:
            yield b"".join((*rest, chunk[:end]))
            rest, held = [], 0
        rest.append(chunk[end:])
        held += len(rest[-1])
        if longest is not None and held > longest:
            raise ValueError(f"a line has more than {longest} bytes")
    if any(rest):
        yield b"".join(rest)


def _graph_of(line: bytes) -> tuple[bytes, bytes]:
    """The name of the graph of the last line, and how the line ends."""
    found = _END.match(line, max(0, line.rfind(b" <")))
    if found is None:
        last = line.rstrip(b"\n").rpartition(b"\n")[2]
        raise NoQuad(f"not a quad of N-Quads: {last[:200]!r}")
    return found[1], found[0]
