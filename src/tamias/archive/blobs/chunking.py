"""Very large bodies are cut where their content says, so that what two versions share is kept once."""

import hashlib
import io
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import msgspec

from tamias.model.capture import Body
from tamias.model.errors import TamiasError

AVERAGE_BYTES = 64 * 1024
_AT_ONCE = 256
_DIGEST = 64


class Chunk(msgspec.Struct, frozen=True):
    """A part of a body."""

    sha256: str
    content: bytes


def content_of(body: Body) -> bytes:
    """A body in memory.

    Its digest was made while it was fetched, and is not made again: that would cost a fifth of the whole
    ingest. A file that was altered since is found at the first read, and never given for what it is not.
    """
    with _opened(body) as file:
        content = file.read()
    _expect(len(content) == body.size, body)
    return content


def chunks_of(body: Body) -> Iterator[list[Chunk]]:
    """The chunks of a body, in order, some at a time. Raises at the end if they are not those of the body."""
    from pyfastcdc import FastCDC

    digest = hashlib.sha256()
    with _opened(body) as file:
        cuts = FastCDC(AVERAGE_BYTES).cut_stream(file)
        while some := [bytes(each.data) for each in islice(cuts, _AT_ONCE)]:
            for content in some:
                digest.update(content)
            yield [Chunk(hashlib.sha256(content).hexdigest(), content) for content in some]
    _expect(digest.hexdigest() == body.sha256, body)


def list_of(chunks: Iterable[tuple[str, int]]) -> bytes:
    """Digests and sizes as text: one chunk a line, in order."""
    return b"".join(b"%s %d\n" % (sha256.encode(), size) for sha256, size in chunks)


def listed(text: bytes) -> list[str]:
    """The digests of a list."""
    return [line[:_DIGEST].decode("ascii", "replace") for line in text.splitlines()]


def _opened(body: Body) -> BinaryIO:
    if body.path is None:
        return io.BytesIO(body.data or b"")
    try:
        return Path(body.path).open("rb", buffering=0)
    except OSError as error:
        raise TamiasError(f"cannot read the body at {body.path}: {error.strerror}") from error


def _expect(same: bool, body: Body) -> None:
    if not same:
        raise TamiasError(f"the body at {body.path} has changed since it was fetched; fetch it again")
