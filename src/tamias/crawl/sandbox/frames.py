"""The messages between a worker and its sandbox: typed frames of bounded size over two pipes.

An open file can go along with an order: the sandbox has no way to open the worker's files by name.

Nothing is unpickled: a sandbox that a document has taken over can only say what stands here.
"""

import os
import select
import socket
import struct
from typing import TypeVar

import msgspec

from tamias.crawl.analysis.extractor import Extraction, ReadingState
from tamias.model.capture import Capture
from tamias.model.finding import Words
from tamias.settings import Settings

MOST_FRAME = 64 << 20
"""Bytes of a frame: a body in memory, a piece of quads, or all that was found of a document."""
_LENGTH = struct.Struct(">I")
_READ = 1 << 20


class Plan(msgspec.Struct, frozen=True, tag=True):
    """The first thing a sandbox is told."""

    settings: Settings


class Job(msgspec.Struct, frozen=True, tag=True):
    """A document to be analysed; a large body is an open file that goes along."""

    capture: Capture
    kind: str | None
    most_bytes: int
    """That it may be unpacked to."""
    is_stored: bool = False
    """Whether the worker stores how far it was read."""
    start: ReadingState | None = None


class Context(msgspec.Struct, frozen=True, tag=True):
    """A JSON-LD context that was asked for; whether anybody has tried to get it."""

    data: bytes | None
    tried: bool


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The sandbox stands; `open` names the walls that this system did not let it build."""

    open: tuple[str, ...]


class Wrote(msgspec.Struct, frozen=True, tag=True):
    """A piece of N-Quads."""

    chunk: bytes


class Linked(msgspec.Struct, frozen=True, tag=True):
    """Links: references, their base and their kind."""

    references: list[str]
    base: str
    kind: str | None
    words: dict[str, Words] = {}
    """That they stand among, where somebody wants these."""


class Passed(msgspec.Struct, frozen=True, tag=True):
    """The reading position, sent after all quads before it."""

    reading: ReadingState


class WantsContext(msgspec.Struct, frozen=True, tag=True):
    """Asks for a context and waits for the answer."""

    address: str


class WantsMore(msgspec.Struct, frozen=True, tag=True):
    """The end of a document that wants contexts which nobody has tried to get."""

    addresses: list[str]


class DocumentEnd(msgspec.Struct, frozen=True, tag=True):
    """The end of a document."""

    found: Extraction


class Broke(msgspec.Struct, frozen=True, tag=True):
    """The end of a document at a fault of ours, or for want of memory."""

    fault: str
    memory: bool = False


Order = Plan | Job | Context
Answer = Ready | Wrote | Linked | Passed | WantsContext | WantsMore | DocumentEnd | Broke
_encoder = msgspec.msgpack.Encoder()
orders: msgspec.msgpack.Decoder[Order] = msgspec.msgpack.Decoder(Order)
answers: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)
T = TypeVar("T")


class FrameError(Exception):
    """The received bytes are not a frame of ours."""


class Frames:
    """An end of the pipes."""

    def __init__(self, incoming: int, outgoing: int, *, files_come: bool = False) -> None:
        """`files_come` along with messages where the incoming end is a socket."""
        self._incoming = incoming
        self._outgoing = outgoing
        self._buffer = bytearray()
        self._files_come = files_come
        self.files: list[int] = []
        """Descriptors that came; whoever takes one out closes it."""

    def send(self, message: Order | Answer, file: int | None = None) -> None:
        """Raises `FrameError` for what is too large, `OSError` when nobody reads any more."""
        content = _encoder.encode(message)
        if len(content) > MOST_FRAME:
            raise FrameError(f"more than {MOST_FRAME} bytes at once")
        rest = memoryview(_LENGTH.pack(len(content)) + content)
        if file is not None:
            with socket.socket(fileno=os.dup(self._outgoing)) as end:
                rest = rest[socket.send_fds(end, [rest], [file]) :]
        while rest:
            rest = rest[os.write(self._outgoing, rest) :]

    def receive(self, decoder: msgspec.msgpack.Decoder[T], seconds: float | None = None) -> T | None:
        """The next message; None when none came in time. `EOFError` at the end, `FrameError` for nonsense."""
        while (size := self._size()) is None:
            if not select.select([self._incoming], [], [], seconds)[0]:
                return None
            piece = self._read()
            if not piece:
                raise EOFError
            self._buffer += piece
        content = self._buffer[_LENGTH.size : size]
        del self._buffer[:size]
        try:
            return decoder.decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise FrameError(str(error)) from error

    def _read(self) -> bytes:
        if not self._files_come:
            return os.read(self._incoming, _READ)
        with socket.socket(fileno=os.dup(self._incoming)) as end:
            piece, files, _, _ = socket.recv_fds(end, _READ, 1)
        self.files += files
        return piece

    def _size(self) -> int | None:
        """Return the size of the first frame if it has arrived completely."""
        if len(self._buffer) < _LENGTH.size:
            return None
        size = int(_LENGTH.unpack_from(self._buffer)[0])
        if size > MOST_FRAME:
            raise FrameError(f"a frame of {size} bytes")
        return size + _LENGTH.size if len(self._buffer) >= size + _LENGTH.size else None

    def close(self) -> None:
        """Closes both pipes."""
        os.close(self._incoming)
        os.close(self._outgoing)
