"""Messages between users of the store, its keeper and its processes, over Unix sockets; their memory."""

import os
import socket
import struct
from pathlib import Path
from typing import Final, TypeVar

import msgspec

QUERY, WRITE, ADOPT = b"q", b"w", b"a"
"""What a user asks the keeper for: an answer, a line to the writer, the new store in place of the old."""
DONE, LAST = b".", b"!"
"""What a process tells the keeper when it has an answer: it takes another query, or it ends now."""
_LENGTH: Final = struct.Struct(">I")
_LONGEST: Final = 1 << 30

T = TypeVar("T", bound=msgspec.Struct)


class QueryOrder(msgspec.Struct, frozen=True):
    """A query over all graphs, or over those that are named as the SPARQL protocol does."""

    query: str
    accept: str
    graphs: dict[str, list[str]]
    most_bytes: int
    past: str = ""
    """A state of the past that it is about, whose quads are in the file that comes with the query."""
    size: int = 0
    """Of that file."""
    folder: str = ""
    """The folder of its store, where the state is large."""


class QueryReply(msgspec.Struct, frozen=True):
    """The result of a query."""

    kind: str
    """`answer`, or why there is none: `refused`, `late`, `large`, `memory`, `damaged`, `failed`."""
    message: str = ""
    status: int = 0
    media_type: str = ""
    size: int = 0


class WriteOrder(msgspec.Struct, frozen=True):
    """Graphs to be replaced, each by its N-Triples; one without any is removed."""

    graphs: dict[str, bytes]
    file: str = ""
    """A graph whose N-Triples are in the file that comes with the order: it is too large for memory."""
    publish: bool = False
    """Queries see all that was written when this is done."""
    is_held: bool = False
    """Whether the graphs may be written with those of later orders by the same line; `publish` ends that."""


class WriteReply(msgspec.Struct, frozen=True):
    """The result of an order to write."""

    error: str | None = None
    is_lost: bool = False
    """Whether nothing at all can be written."""


def send(line: socket.socket, message: msgspec.Struct, descriptors: tuple[int, ...] = ()) -> None:
    """Sends a message, and open files with it."""
    content = msgspec.msgpack.encode(message)
    head = _LENGTH.pack(len(content))
    if descriptors:
        socket.send_fds(line, [head], list(descriptors))
    else:
        line.sendall(head)
    line.sendall(content)


def receive(line: socket.socket, kind: type[T]) -> tuple[T, list[int]]:
    """The next message and the files that came with it. Raises `EOFError` at the end of the line."""
    head, descriptors, _, _ = socket.recv_fds(line, _LENGTH.size, 4)
    while len(head) < _LENGTH.size:
        head += _some(line, _LENGTH.size - len(head))
    (length,) = _LENGTH.unpack(head)
    if length > _LONGEST:
        raise EOFError("a message is too long")
    content = bytearray()
    while len(content) < length:
        content += _some(line, min(1 << 20, length - len(content)))
    return msgspec.msgpack.decode(content, type=kind), descriptors


def _some(line: socket.socket, most: int) -> bytes:
    piece = line.recv(most)
    if not piece:
        raise EOFError("the line has ended")
    return piece


_LEAST_BYTES = 256 << 20
"""A query with less than that answers little."""
_MOST_AT_ONCE = 8


def memory_limit(own: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the bytes that this process may have: those of the machine, or of a control group around it."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for line in own.read_text(encoding="utf-8").splitlines() if own.exists() else ():
        _, kinds, name = line.split(":", 2)
        folder, file = ("memory", "memory.limit_in_bytes") if kinds else ("", "memory.max")
        place = root / folder / name.lstrip("/") / file
        if "memory" not in kinds.split(",") and kinds:
            continue
        # In a container its own group may be the root that it sees.
        for each in (place, *(above / file for above in place.parent.parents if above.is_relative_to(root))):
            text = each.read_text(encoding="ascii").strip() if each.exists() else ""
            limits += [int(text)] if text.isdigit() else []
    return min(limits)


_BYTES = memory_limit() // 2
MOST_QUERIES = max(2, min(_MOST_AT_ONCE, _BYTES // _LEAST_BYTES))
"""Processes that answer queries at once."""
QUERY_MEMORY = max(_LEAST_BYTES // 2, _BYTES // MOST_QUERIES)
"""Bytes that one query may take: one that sorts the whole store ends its process, not the machine."""
PAST_BYTES = QUERY_MEMORY // 8
"""Bytes of N-Quads of states of the past that a process keeps: in memory they take five times as much."""
LARGE_STATE = min(64 << 20, PAST_BYTES // 2)
"""From so many on a state is a store on disk."""
