"""What comes over pipes and gRPC: messages are refused with a reason, or mean something that can be kept."""

import os
import struct

import msgspec

from tamias.crawl.sandbox.sandbox import FrameError, Frames, answers, orders
from tamias.features.remote_workers import wire
from tamias.features.remote_workers.grpc.connection import CallError, message
from tamias.features.urlfrontier.puts import parsed
from tamias.features.urlfrontier.reading import Addresses, due_of, fill_metadata
from tamias.features.urlfrontier.workers import value_of
from tamias.frontier.service import NamedQueues
from tamias.model.url import DEFAULT_SESSION_NAMES

_ADDRESSES = Addresses(DEFAULT_SESSION_NAMES)
_QUEUES = NamedQueues(7, own_politeness=True)
_ITEM = message("urlfrontier.URLItem")
_BATCH = message("urlfrontier.DiscoveredBatch")
_INFO = message("urlfrontier.URLInfo")
_PARCEL = message("tamias.Parcel")
_WORDS = (*wire.CALLS.values(), wire.DeliveredVisit, wire.Released, wire.Lent)


def urlfrontier(data: bytes) -> None:
    """URLs of a client: the one form of each stays as it is, and its metadata comes back."""
    for kind in (_ITEM, _BATCH, _INFO):
        try:
            told = parsed(kind, data)
        except CallError:
            continue
        for info in _infos(told):
            _take(info)


def _infos(told):
    if isinstance(told, _BATCH):
        return list(told.items)
    if isinstance(told, _ITEM):
        due_of(told.known.refetchable_from_date)
        return [told.known.info, told.discovered.info]
    return [told]


def _take(info) -> None:
    told = _ADDRESSES.read_item(info, _QUEUES)
    if told is None:
        return
    assert _ADDRESSES.same(told.url, info.url)
    again = _INFO()
    fill_metadata(again, told.metadata, told.tags)
    assert {name: list(each.values) for name, each in again.metadata.items()} == {
        name: list(each.values) for name, each in info.metadata.items()
    }


def workers(data: bytes) -> None:
    """Words of a worker, the first byte choosing which; read again they are the same."""
    kind = _WORDS[data[0] % len(_WORDS)] if data else _WORDS[0]
    try:
        value = value_of(data[1:], kind)
        parsed(_PARCEL, data[1:])
    except CallError:
        return
    again = wire.unpacked(wire.packed(value), kind)
    assert wire.packed(again) == wire.packed(value)


def frames(data: bytes) -> None:
    """What a sandbox sends: messages of a known type, a `FrameError`, or the end."""
    framed = struct.pack(">I", len(data)) + data
    for stream in (data[: 1 << 15], framed[: 1 << 15]):
        for decoder in (answers, orders):
            _receive(stream, decoder)


def _receive(stream: bytes, decoder: "msgspec.msgpack.Decoder") -> None:
    incoming, theirs = os.pipe()
    try:
        os.write(theirs, stream)
        os.close(theirs)
        pipe = Frames(incoming, theirs)
        while pipe.receive(decoder, 1) is not None:
            pass
    except (FrameError, EOFError):
        return
    finally:
        os.close(incoming)
