"""The process that owns the store and writes to it. What it has written, queries see in the next snapshot."""

import gc
import os
import selectors
import socket
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, NoReturn

from pyoxigraph import NamedNode, Quad, RdfFormat, Store, parse

from tamias.crawl.catalogue.compacting import Compaction
from tamias.crawl.catalogue.messages import WriteOrder, WriteReply, receive, send
from tamias.crawl.catalogue.snapshots import (
    NEXT,
    STORE,
    bytes_left_behind,
    clear_leftovers,
    is_dirty,
    mark_dirty,
    mark_format,
    publish,
    remove_old,
    take_next,
)

_LARGE_GRAPH: Final = 100_000
"""Statements of a graph above which it is written as a whole, not compared."""
_IDLE_SECONDS: Final = 1.0
_ORDER_SECONDS: Final = 60.0
DAMAGED: Final = WriteReply(
    "the store of the catalogue cannot be opened; 'tamias check --rebuild' makes another", is_lost=True
)


class GraphWriter:
    """Replaces graphs. What a graph has already is not written again."""

    def __init__(self, folder: Path, compaction: Compaction | None = None) -> None:
        """Raises `OSError`."""
        self._folder = folder
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        clear_leftovers(folder)
        self._store = Store(str(folder / STORE))
        self._compaction = compaction or Compaction(folder)
        self._freed_at = 0.0
        mark_format(folder)
        self._written_at = time.monotonic() if is_dirty(folder) else None

    def replace_all(self, contents: dict[str, bytes]) -> None:
        """Many graphs by their N-Triples; one without any is removed."""
        added: list[Quad] = []
        for graph, content in contents.items():
            name = NamedNode(graph)
            added += self._replace(name, content)
        if added:
            self._begin()
            self._store.extend(added)

    def replace_large(self, graph: str, descriptor: int) -> None:
        """A graph by a file of N-Triples."""
        self._begin()
        name = NamedNode(graph)
        self._store.remove_graph(name)
        with os.fdopen(descriptor, "rb") as file:
            self._store.bulk_extend(_quads(file, name))
        self._compaction.note(graph, 0)

    def publish(self) -> None:
        """Queries see what was written."""
        if self._written_at is not None:
            publish(self._store, self._folder)
            self._written_at = None

    def tend(self) -> None:
        """To be called now and then: publishes what nobody has published, and keeps the store small."""
        if self._written_at is not None and time.monotonic() - self._written_at > _IDLE_SECONDS:
            self.publish()  # whoever wrote it may have been killed
        if self._compaction.is_done():
            self._take_compacted()
        elif self._written_at is None:
            self._free_files()
            self._compaction.start_if_due()

    def close(self) -> None:
        """Lets go of the files."""
        self._compaction.end()
        del self._store
        gc.collect()

    def _take_compacted(self) -> None:
        """What was written since the compaction began is brought to the new store, which is then this one."""
        names = [NamedNode(graph) for graph in self._compaction.touched]
        new = Store(str(self._folder / NEXT / STORE))
        for name in names:
            new.remove_graph(name)
        new.bulk_extend(
            quad for name in names for quad in self._store.quads_for_pattern(None, None, None, name)
        )
        new.flush()
        del new, self._store
        gc.collect()  # only then are their files closed
        take_next(self._folder)
        self._store = Store(str(self._folder / STORE))
        self._begin()
        self.publish()

    def _free_files(self) -> None:
        """A store that is quiet goes on to merge its files; snapshots of before would keep the old ones."""
        now = time.monotonic()
        if now - self._freed_at > _IDLE_SECONDS:
            self._freed_at = now
            remove_old(self._folder)
            if bytes_left_behind(self._folder) > self._compaction.slack:
                publish(self._store, self._folder)

    def _begin(self) -> None:
        if self._written_at is None:
            mark_dirty(self._folder)
        self._written_at = time.monotonic()

    def _replace(self, name: NamedNode, content: bytes) -> set[Quad]:
        """Removes what the graph has and shall not have; returns what it has not yet."""
        new = set(_quads(content, name)) if content else set()
        if not self._store.contains_named_graph(name):  # as a new version is: nothing is looked for in vain
            self._compaction.note(name.value, len(new))
            return new
        old = set(islice(self._store.quads_for_pattern(None, None, None, name), _LARGE_GRAPH))
        if not new or len(old) == _LARGE_GRAPH:
            self._begin()
            self._store.remove_graph(name)
            self._compaction.note(name.value, len(new) - len(old))
            return new
        if old != new:
            self._begin()
            self._compaction.note(name.value, len(new) - len(old))
        for quad in old - new:
            self._store.remove(quad)
        return new - old


def write_graphs(keeper: socket.socket, folder: Path) -> NoReturn:
    """Until the keeper ends it. `folder` is that of the store; users come by way of the keeper."""
    writer: GraphWriter | None
    try:
        writer = GraphWriter(folder)
    except (OSError, RuntimeError) as error:
        writer = None
        sys.stderr.write(f"the store at {folder} cannot be opened: {error}\n")
        sys.stderr.flush()
    with selectors.DefaultSelector() as lines:
        lines.register(keeper, selectors.EVENT_READ)
        while True:
            for key, _ in lines.select(_IDLE_SECONDS):
                line = key.fileobj
                assert isinstance(line, socket.socket)
                if line is keeper:
                    newcomer = _newcomer(keeper)
                    if newcomer is None:
                        if writer is not None:
                            writer.close()
                        os._exit(0)
                    lines.register(newcomer, selectors.EVENT_READ)
                elif not _obey(writer, line):
                    lines.unregister(line)
                    line.close()
            if writer is not None:
                writer.tend()


def _newcomer(keeper: socket.socket) -> socket.socket | None:
    """The line to another user; None when the keeper wants an end."""
    word, descriptors, _, _ = socket.recv_fds(keeper, 1, 1)
    if not word:
        return None
    line = socket.socket(fileno=descriptors[0])
    line.settimeout(_ORDER_SECONDS)
    return line


def _obey(writer: GraphWriter | None, line: socket.socket) -> bool:
    """Does what is asked for; False when the line has ended."""
    try:
        order, descriptors = receive(line, WriteOrder)
        send(line, DAMAGED if writer is None else WriteReply(_error(writer, order, descriptors)))
    except (OSError, EOFError):
        return False
    return True


def _error(writer: GraphWriter, order: WriteOrder, descriptors: list[int]) -> str | None:
    """What kept it from being done."""
    try:
        writer.replace_all(order.graphs)
        if order.file:
            writer.replace_large(order.file, descriptors[0])
        if order.publish:
            writer.publish()
    except (OSError, RuntimeError, ValueError, SyntaxError) as error:
        return str(error) or type(error).__name__
    return None


def _quads(content: bytes | BinaryIO, graph: NamedNode) -> Iterator[Quad]:
    for quad in parse(content, format=RdfFormat.N_TRIPLES, lenient=True):
        yield Quad(quad.subject, quad.predicate, quad.object, graph)
