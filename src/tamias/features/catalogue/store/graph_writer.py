"""The process that owns the store and writes to it. What it has written, queries see in the next snapshot."""

import gc
import os
import re
import selectors
import socket
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, NoReturn

from pyoxigraph import NamedNode, Quad, RdfFormat, Store, parse, serialize

from tamias.content.zstd import zstd
from tamias.features.catalogue.store.messages import WriteOrder, WriteReply, receive, send
from tamias.features.catalogue.store.snapshots import (
    NEXT,
    STORE,
    Compaction,
    bytes_left_behind,
    clear_leftovers,
    is_dirty,
    mark_dirty,
    mark_format,
    publish,
    remove_old,
    size_of,
    take_next,
)

_LARGE_GRAPH: Final = 100_000
"""Statements of a graph above which it is written as a whole, not compared."""
_BULK: Final = 300
"""Statements above which the bulk loader takes less time than a transaction."""
_SMALL_BYTES: Final = 64 << 20
"""Of a store. Where transactions and the bulk loader write for one snapshot, RocksDB has two new files of
each index and not one, and merges files twice as often with the whole store: with a larger one that takes
more time than the bulk loader saves.
"""
_SMALL_TIMES: Final = 20
"""The same for a large lot: a store that is not larger than so many times what is added to it."""
_LOT_BYTES: Final = 64 << 20
"""Of graphs that are held until they are written together."""
_AT_ONCE: Final = 100
"""Graphs that are parsed in one go."""
_HEAD: Final = re.compile(r"urn:tamias:catalogue:[0-9a-f]{24}")
_HEADS_BYTES: Final = 32 << 20
"""Compressed: those of about fifty thousand resources."""
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
        self._heads = _Heads()
        self._held: dict[str, bytes] = {}
        self._held_bytes = 0
        self._has_transactions = False
        """Whether some were made since the last snapshot."""
        self._freed_at = 0.0
        mark_format(folder)
        self._written_at = time.monotonic() if is_dirty(folder) else None

    def hold(self, contents: dict[str, bytes]) -> None:
        """The same as `replace_all`, but they may be written with the next ones: larger lots take less time.

        They are safe when `publish` has returned, and lost when something fails before: one round of news at
        a time is brought, and brought again if any order of it fails.
        """
        self._begin()
        self._held |= contents
        self._held_bytes += sum(map(len, contents.values()))
        if self._held_bytes > _LOT_BYTES:
            self.replace_all({})

    def replace_all(self, contents: dict[str, bytes]) -> None:
        """Replace many graphs by their N-Triples; one without any is removed."""
        contents = self._held | contents
        self._held, self._held_bytes = {}, 0
        added: list[bytes] = []
        try:
            while contents:  # taken away one after the other: there may be many
                graph, content = contents.popitem()
                if new := self._replace(graph, content):
                    added.append(new)
            if added:
                self._begin()
                is_for_bulk = self._is_for_bulk(added)
                quads = _parsed(added)
                if is_for_bulk:
                    self._store.bulk_extend(quads)
                else:
                    self._has_transactions = True
                    self._store.extend(quads)
        except BaseException:
            self._heads.clear()
            raise

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
        if self._held:
            self.replace_all({})
        if self._written_at is not None:
            publish(self._store, self._folder)
            self._written_at = None
            self._has_transactions = False

    def tend(self) -> None:
        """Publish what nobody has published, and keep the store small; call this now and then."""
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
        """Bring what was written since the compaction began to the new store, and switch to it."""
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

    def _is_for_bulk(self, added: list[bytes]) -> bool:
        if sum(each.count(b"\n") for each in added) <= _BULK:
            return False
        small = max(_SMALL_BYTES, _SMALL_TIMES * sum(map(len, added)))
        return not self._has_transactions or size_of(self._folder / STORE) < small

    def _replace(self, graph: str, content: bytes) -> bytes:
        """Removes what the graph has and shall not have; returns what it has not yet, as N-Quads."""
        name = NamedNode(graph)
        new = _nquads(content, name)
        old = self._heads.get(graph) or self._read(name)
        if _HEAD.fullmatch(graph):
            self._heads.keep(graph, new)
        if not old:  # as a new version is: nothing is looked for in vain
            self._compaction.note(graph, new.count(b"\n"))
            return new
        size = old.count(b"\n")
        more = new.count(b"\n") - size
        if not new or size == _LARGE_GRAPH:
            self._begin()
            self._has_transactions = True
            self._store.remove_graph(name)
            self._compaction.note(graph, more)
            return new
        before, after = set(old.splitlines(keepends=True)), set(new.splitlines(keepends=True))
        if before != after:
            self._begin()
            self._compaction.note(graph, more)
        for quad in parse(b"".join(before - after), format=RdfFormat.N_QUADS, lenient=True):
            self._has_transactions = True
            self._store.remove(quad)
        return b"".join(after - before)

    def _read(self, name: NamedNode) -> bytes:
        if not self._store.contains_named_graph(name):
            return b""
        found = islice(self._store.quads_for_pattern(None, None, None, name), _LARGE_GRAPH)
        return serialize(found, format=RdfFormat.N_QUADS) or b""


class _Heads:
    """Graphs of resources as they were last written: they change with each version, and are not read back.

    To read one takes the longer the larger the store is, and each version needs one.
    """

    def __init__(self) -> None:
        self._packed: dict[str, bytes] = {}
        self._bytes = 0
        self._compressor = zstd.ZstdCompressor(level=1)

    def __len__(self) -> int:
        return len(self._packed)

    def get(self, graph: str) -> bytes:
        """Return the statements of a graph, or none if they are not known."""
        packed = self._packed.get(graph)
        return zstd.decompress(packed) if packed else b""

    def keep(self, graph: str, content: bytes) -> None:
        """Remember the statements of a graph; those written longest ago make room."""
        packed = self._compressor.compress(content, zstd.ZstdCompressor.FLUSH_FRAME)
        self._bytes += len(packed) - len(self._packed.pop(graph, b""))
        self._packed[graph] = packed
        while self._bytes > _HEADS_BYTES:
            self._bytes -= len(self._packed.pop(next(iter(self._packed))))

    def clear(self) -> None:
        """Forget all graphs."""
        self._packed.clear()
        self._bytes = 0


def write_graphs(keeper: socket.socket, folder: Path) -> NoReturn:
    """Write to the store in `folder` until the keeper ends this process; the keeper passes users on."""
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
    """Carry out an order; return why it could not be done, if so."""
    try:
        (writer.hold if order.is_held else writer.replace_all)(order.graphs)
        if order.file:
            writer.replace_large(order.file, descriptors[0])
        if order.publish:
            writer.publish()
    except (OSError, RuntimeError, ValueError, SyntaxError) as error:
        return str(error) or type(error).__name__
    return None


def _nquads(content: bytes, graph: NamedNode) -> bytes:
    """N-Triples as N-Quads of a graph. Ours have one statement a line, which ends as ours do."""
    if content.count(b" .\n") == content.count(b"\n") and content[-1:] in (b"\n", b""):
        return content.replace(b" .\n", b" %b .\n" % str(graph).encode())
    return serialize(_quads(content, graph), format=RdfFormat.N_QUADS) or b""


def _parsed(added: list[bytes]) -> Iterator[Quad]:
    """The quads of many pieces of N-Quads, some pieces at a time; those that were parsed are let go."""
    while added:
        some = added[-_AT_ONCE:]
        del added[-_AT_ONCE:]
        yield from parse(b"".join(some), format=RdfFormat.N_QUADS, lenient=True)


def _quads(content: bytes | BinaryIO, graph: NamedNode) -> Iterator[Quad]:
    for quad in parse(content, format=RdfFormat.N_TRIPLES, lenient=True):
        yield Quad(quad.subject, quad.predicate, quad.object, graph)
