"""The shared part of both ends of a gRPC connection: HTTP/2, flow control, messages, status codes.

Messages are made from `descriptors.binpb`, which the `.proto` files give: `python -m grpc_tools.protoc -I.
--descriptor_set_out=descriptors.binpb urlfrontier.proto health.proto reflection.proto tamias.proto` in this
folder.
"""

import asyncio
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from enum import IntEnum
from importlib.resources import files
from typing import Any, cast

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tamias.model.errors import DatabaseUnavailable, DiskFull, TamiasError, UrlError, UsageError

FRONTIER = "urlfrontier.URLFrontier"
WORKERS = "tamias.Workers"
HEALTH = "grpc.health.v1.Health"
REFLECTION = "grpc.reflection.v1.ServerReflection"
REFLECTION_ALPHA = "grpc.reflection.v1alpha.ServerReflection"
"""The same service under the name that older clients ask for."""

Message = Any
"""Classes made at run time: the type checker cannot see into them."""


def _described() -> list[Any]:
    described = (
        files("tamias").joinpath("features", "remote_workers", "grpc", "descriptors.binpb").read_bytes()
    )
    return list(descriptor_pb2.FileDescriptorSet.FromString(described).file)


FILES: dict[str, Any] = {each.name: each for each in _described()}
"""The descriptions by file name."""

# A pool of our own: a program that has the public packages loaded too must not meet two of a name.
_POOL = descriptor_pool.DescriptorPool()
for _file in FILES.values():
    _POOL.Add(_file)


def message(name: str) -> Message:
    """The class of a message, such as `urlfrontier.URLItem`."""
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(name))


def method_types(service: str) -> dict[str, tuple[Message, Message]]:
    """Request and answer of each call of a service."""
    methods = _POOL.FindServiceByName(service).methods
    return {
        each.name: (
            message_factory.GetMessageClass(each.input_type),
            message_factory.GetMessageClass(each.output_type),
        )
        for each in methods
    }


def file_of(symbol: str) -> Any:
    """The description of the file in which a service or message stands; KeyError where there is none."""
    return FILES[_POOL.FindFileContainingSymbol(symbol).name]


class Code(IntEnum):
    """Status codes of gRPC."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16


class CallError(Exception):
    """The call cannot be answered; the client is told why."""

    def __init__(self, code: Code, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence


def refusal(error: TamiasError) -> CallError:
    """Return the gRPC error that reports an error of ours to the client."""
    if isinstance(error, UrlError | UsageError):
        return CallError(Code.INVALID_ARGUMENT, str(error))
    if isinstance(error, DiskFull):
        return CallError(Code.RESOURCE_EXHAUSTED, str(error))
    if isinstance(error, DatabaseUnavailable):
        return CallError(Code.UNAVAILABLE, str(error))
    return CallError(Code.INTERNAL, str(error))


_PREFIX = struct.Struct(">BI")
_FRAME_HEAD = struct.Struct(">HBBBI")
_DATA = 0
"""The kind of a frame."""


class GrpcConnection(asyncio.Protocol, ABC):
    """A connection of a client or of a service."""

    def __init__(
        self, *, client: bool, window: int, settings: Mapping[h2.settings.SettingCodes, int]
    ) -> None:
        """`window` is what may be under way to this end in all streams together."""
        # A service's headers are its own and need no check; that of a client costs nothing beside its work.
        self._h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(
                client_side=client, header_encoding="utf-8", validate_outbound_headers=client
            )
        )
        self._h2.local_settings = h2.settings.Settings(client=client, initial_values=dict(settings))
        self._window = window
        self._room = asyncio.Event()
        self._writable = True
        self._transport: asyncio.Transport | None = None

    @property
    def closed(self) -> bool:
        """Tell if the connection can no longer be used."""
        return self._transport is None or self._transport.is_closing()

    def close(self) -> None:
        """Ends the connection once what was written is sent."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(self._window)
        self._flush()

    def pause_writing(self) -> None:
        self._writable = False

    def resume_writing(self) -> None:
        self._writable = True
        self._room.set()

    @abstractmethod
    def _take(self, event: h2.events.Event) -> None:
        """Handle an event of HTTP/2."""

    def _receive(self, data: bytes) -> Exception | None:
        """Takes all events; returns the fault where the other end broke the protocol."""
        try:
            for event in self._h2.receive_data(data):
                self._take(event)
        except (h2.exceptions.ProtocolError, UnicodeDecodeError) as error:
            return error
        finally:
            self._flush()
        return None

    def _send_some(self, stream: int, data: memoryview) -> memoryview:
        """Sends what the other end has room for, and returns the rest. Raises `ConnectionError`.

        When nothing could be sent, `_room` is set as soon as that may be otherwise.
        """
        if self.closed:
            raise ConnectionError("the connection is lost")
        room = min(self._h2.local_flow_control_window(stream), self._h2.max_outbound_frame_size)
        if room <= 0 or not self._writable:
            self._room.clear()
            return data
        self._write_data(stream, bytes(data[:room]))
        return data[room:]

    def _write_data(self, stream: int, data: bytes) -> None:
        """A data frame without the library, which takes 20 µs for it; it is told what its windows lose."""
        opened = self._h2.streams[stream]
        if opened.closed:
            raise ConnectionError("the stream is closed")
        self._h2.outbound_flow_control_window -= len(data)
        opened.outbound_flow_control_window -= len(data)
        head = _FRAME_HEAD.pack(len(data) >> 8, len(data) & 0xFF, _DATA, 0, stream)
        assert self._transport is not None
        self._transport.write(self._h2.data_to_send() + head + data)

    def _flush(self) -> None:
        data = self._h2.data_to_send()
        if data and self._transport is not None:
            self._transport.write(data)


def framed(messages: Iterable[bytes]) -> bytes:
    """Messages as gRPC sends them."""
    pack = _PREFIX.pack
    return b"".join([part for each in messages for part in (pack(0, len(each)), each)])


def split_messages(data: bytearray, longest: int, most: int | None = None) -> list[bytes]:
    """Takes complete messages from the front of what came, up to `most`. Raises `CallError`."""
    messages: list[bytes] = []
    at, end = 0, len(data)
    while end - at >= _PREFIX.size and len(messages) != most:
        packed, length = _PREFIX.unpack_from(data, at)
        if packed:
            raise CallError(Code.UNIMPLEMENTED, "compressed messages are not understood")
        if length > longest:
            raise CallError(Code.RESOURCE_EXHAUSTED, f"a message of {length} bytes is longer than {longest}")
        if end - at - _PREFIX.size < length:
            break
        at += _PREFIX.size + length
        messages.append(bytes(data[at - length : at]))
    del data[:at]
    return messages
