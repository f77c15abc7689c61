"""The choice of a codec by trial: first a difference to the base, then plain compression."""

from functools import cached_property

import msgspec

from tamias.archive.blobs.blob import Codec
from tamias.archive.blobs.frames import (
    PayloadError,
    Text,
    compress,
    compress_best,
    compress_delta,
    decompress,
    raw,
    unpack_raw,
)
from tamias.archive.blobs.groups import decode_group

WORTH = 0.6
"""A base is used when it makes the payload smaller than this share of plain compression's."""
GOOD = 0.25
"""Of plain compression's: a payload that is as small ends the search."""
OBVIOUS = 0.04
"""Of the body: a payload that is as small is taken without asking what plain compression would give."""
LEAST_GAIN = 0.05
"""Less than that is no reason to compress at all."""
_PIECES = 8
_PIECE_BYTES = 64 * 1024


class Payload(msgspec.Struct, frozen=True):
    """A body as it is stored; decoded with its base if the codec says so."""

    codec: Codec
    content: bytes


class Base(msgspec.Struct, frozen=True):
    """A body like the one that comes: mostly the version before."""

    content: bytes
    codec: Codec
    """How it was stored itself: what served once is tried first again."""
    full: int
    """Bytes of the key frame that it is decoded from."""
    spent: int
    """Bytes of the payloads since; when they come to those of a key frame, one is due."""


def encode(body: bytes, base: Base | None = None) -> Payload:
    """The smallest payload that is found in about the time of plain compression."""
    plain = _Plain(body)
    found = _with_base(body, base, plain) if base else None
    return found or _alone(body, plain)


def encode_best(body: bytes, base: bytes | None = None) -> Payload:
    """The smallest payload, however long it takes; one that needs a base if there is one."""
    content = compress_best(body, base)
    if base is not None:
        return Payload(Codec.ZDELTA, content)
    return (
        Payload(Codec.ZSTD, content)
        if len(content) < (1 - LEAST_GAIN) * len(body)
        else Payload(Codec.RAW, raw(body))
    )


def decode(codec: Codec, payload: bytes, size: int, base: Text | None) -> Text:
    """The body. `PayloadError` when the payload cannot be one of that codec; only its digest proves it."""
    match codec:
        case Codec.RAW:
            return Text(unpack_raw(payload))
        case Codec.ZSTD:
            return Text(decompress(payload, size))
        case Codec.ZDELTA if base is not None:
            return Text(decompress(payload, size, base.content))
        case Codec.ROWS if base is not None:
            from tamias.archive.blobs.lines import decode_rows

            return decode_rows(payload, size, base)
        case Codec.GROUP:
            return Text(decode_group(payload, size, base.content if base is not None else None))
        case _:
            raise PayloadError(f"{codec} has no payload of its own, or its base is missing")


class _Plain:
    """The result of plain compression, estimated from a sample and done only when needed."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.is_short = len(body) <= _PIECES * _PIECE_BYTES

    @cached_property
    def content(self) -> bytes:
        return compress(self._body)

    @cached_property
    def size(self) -> int:
        if self.is_short:
            return len(self.content)
        sample = _sample(self._body)
        return round(len(compress(sample)) * len(self._body) / len(sample))


def _with_base(body: bytes, base: Base, plain: _Plain) -> Payload | None:
    trials = (Codec.ROWS, Codec.ZDELTA) if base.codec is Codec.ROWS else (Codec.ZDELTA, Codec.ROWS)
    best = None
    for codec in trials:
        content = _tried(codec, body, base, plain)
        if content is None:
            continue
        if _obvious(content, body, base):
            return Payload(codec, content)
        if len(content) <= (len(best.content) if best else _most(base, plain)):
            best = Payload(codec, content)
        if best and len(best.content) <= GOOD * plain.size:
            break
    return best


def _tried(codec: Codec, body: bytes, base: Base, plain: _Plain) -> bytes | None:
    if codec is Codec.ROWS:
        from tamias.archive.blobs.lines import encode_rows

        return encode_rows(body, base.content)
    return compress_delta(body, base.content, len(body) if plain.is_short else _most(base, plain))


def _most(base: Base, plain: _Plain) -> int:
    return min(max(base.full, plain.size) - base.spent, round(WORTH * plain.size))


def _obvious(content: bytes, body: bytes, base: Base) -> bool:
    """Return whether plain compression need not even be asked."""
    return len(content) <= min(base.full - base.spent, OBVIOUS * len(body))


def _alone(body: bytes, plain: _Plain) -> Payload:
    worthwhile = (1 - LEAST_GAIN) * len(body)
    if plain.size < worthwhile and len(plain.content) < worthwhile:
        return Payload(Codec.ZSTD, plain.content)
    return Payload(Codec.RAW, raw(body))


def _sample(body: bytes) -> bytes:
    """Pieces from all over the body."""
    step = (len(body) - _PIECE_BYTES) // (_PIECES - 1)
    return b"".join(body[at : at + _PIECE_BYTES] for at in range(0, step * _PIECES, step))
