"""The process that answers queries, one at a time, from the newest snapshot of the store.

It may be killed at any moment: it holds nothing that anybody else needs.
"""

import errno
import io
import os
import resource
import socket
from collections import OrderedDict
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

from pyoxigraph import NamedNode, QueryBoolean, QuerySolutions, QueryTriples, RdfFormat, Store, parse

from tamias.features.catalogue.query_text import names_graphs
from tamias.features.catalogue.result_formats import result_format
from tamias.features.catalogue.store.messages import (
    DONE,
    LAST,
    PAST_BYTES,
    QUERY_MEMORY,
    QueryOrder,
    QueryReply,
    receive,
    send,
)
from tamias.features.catalogue.store.snapshots import OpenSnapshot, newest_mark, open_newest
from tamias.model.vocabulary import METADATA_GRAPH

_IDLE_SECONDS = 2.0
_PIECE = 1 << 16
_ORDER_SECONDS = 10.0

Found = QuerySolutions | QueryBoolean | QueryTriples


def answer_queries(keeper: socket.socket, folder: Path) -> NoReturn:
    """Answer queries from the store in `folder` until the keeper ends or kills this process."""
    resource.setrlimit(resource.RLIMIT_DATA, (QUERY_MEMORY, QUERY_MEMORY))
    stores = _Stores(folder)
    quick = os.getpriority(os.PRIO_PROCESS, 0)
    keeper.settimeout(_IDLE_SECONDS)
    while True:
        try:
            word, descriptors, _, _ = socket.recv_fds(keeper, 1, 3)
        except TimeoutError:
            stores.leave_old()
            continue
        if not word:
            os._exit(0)
        line, spool = socket.socket(fileno=descriptors[0]), os.fdopen(descriptors[1], "wb", buffering=0)
        try:
            with line, spool:
                _serve(line, spool, keeper, stores, descriptors[2:], quick)
        finally:
            for file in descriptors[2:]:
                os.close(file)


class _Stores:
    """Subject of queries: the newest snapshot, the graph of fetches, or states of the past."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._newest: OpenSnapshot | None = None
        self._past: OrderedDict[str, tuple[Store, int]] = OrderedDict()

    def open(self, order: QueryOrder, files: list[int]) -> Store:
        """Return the store of a query; whoever asked may have brought a file with its quads."""
        if order.past:
            return self._open_past(order, files[0])
        if not files:
            self.leave_old()
            self._newest = self._newest or open_newest(self._folder)
            return self._newest.store
        store = Store()
        with open(files[0], "rb", closefd=False) as file:
            store.bulk_load(file, RdfFormat.N_TRIPLES, to_graph=METADATA_GRAPH, lenient=True)
        return store

    def _open_past(self, order: QueryOrder, file: int) -> Store:
        if order.folder:
            return open_newest(Path(order.folder)).store
        store, size = self._past.pop(order.past, (None, order.size))
        if store is None:
            while self._past and sum(held for _, held in self._past.values()) + size > PAST_BYTES:
                self._past.popitem(last=False)
            store = Store()
            # Others read the same open file, so its position is not ours. Blank nodes keep their labels.
            quads = parse(os.pread(file, size, 0), format=RdfFormat.N_QUADS, lenient=True)
            store.bulk_extend(quads)
        self._past[order.past] = store, size
        return store

    def leave_old(self) -> None:
        """Close a snapshot that is not the newest, so that its files can be removed."""
        if self._newest is not None and self._newest.mark != newest_mark(self._folder):
            self._newest.close()
            self._newest = None


def _serve(
    line: socket.socket,
    spool: io.FileIO,
    keeper: socket.socket,
    stores: _Stores,
    files: list[int],
    quick: int,
) -> None:
    """`quick` is the priority that it had in the beginning."""
    reply = None
    try:
        line.settimeout(_ORDER_SECONDS)
        order, _ = receive(line, QueryOrder)
        reply = _reply(stores, order, files, spool)
    except (OSError, EOFError):
        pass  # whoever asked has gone
    is_slow = os.getpriority(os.PRIO_PROCESS, 0) > quick
    # The keeper must know before whoever asked does: one that leaves earlier has given up.
    keeper.sendall(LAST if is_slow else DONE)
    if reply is not None:
        with suppress(OSError):
            send(line, reply)
    if is_slow:
        os._exit(0)  # only the superuser may make it quick again


def _reply(stores: _Stores, order: QueryOrder, files: list[int], spool: io.FileIO) -> QueryReply:
    try:
        store = stores.open(order, files)
    except (OSError, RuntimeError) as error:
        return _damaged(error)
    try:
        with closing(_Bounded(spool, order.most_bytes)) as output:
            found = store.query(order.query, **_dataset(order))
            form = result_format(found, order.accept)
            if form is None:
                return QueryReply("refused", "none of the formats that you accept is available", 406)
            found.serialize(cast("BinaryIO", output), form)  # type: ignore[arg-type]
        return QueryReply("answer", media_type=form.media_type, size=output.size)
    except (SyntaxError, ValueError) as error:
        return QueryReply("refused", str(error), 400)
    except OSError as error:
        if error.errno == errno.EFBIG:
            return QueryReply("large")
        return QueryReply("failed", str(error))
    except RuntimeError as error:
        return _damaged(error)


def _damaged(error: Exception) -> QueryReply:
    return QueryReply(
        "damaged", f"the store of the catalogue cannot be read ({error}); rebuild it: tamias check --rebuild"
    )


def _dataset(order: QueryOrder) -> dict[str, Any]:
    """Return the graphs of the query: all, unless the request or the query names some."""
    if order.graphs:
        return {
            "default_graph": [NamedNode(iri) for iri in order.graphs.get("default-graph-uri", ())],
            "named_graphs": [NamedNode(iri) for iri in order.graphs.get("named-graph-uri", ())],
        }
    return {"use_default_graph_as_union": not names_graphs(order.query)}


class _Bounded(io.RawIOBase):
    """Writes to a file, up to a limit."""

    def __init__(self, file: io.FileIO, most: int) -> None:
        self._file = file
        self._most = most
        self._pieces: list[bytes] = []
        self._held = 0
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, piece: Any) -> int:
        self.size += len(piece)
        if self.size > self._most:
            raise OSError(errno.EFBIG, "the answer is too large")
        self._pieces.append(bytes(piece))
        self._held += len(piece)
        if self._held > _PIECE:
            self.flush()
        return len(piece)

    def flush(self) -> None:
        rest = memoryview(b"".join(self._pieces))
        self._pieces, self._held = [], 0
        while rest:
            rest = rest[self._file.write(rest) :]
