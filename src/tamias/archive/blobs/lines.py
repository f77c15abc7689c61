"""The `rows` codec: the lines of a base by their numbers, in any order, and the lines that are new.

`docs/blobs.md` tells what stands in a payload.
"""

from itertools import repeat

import numpy as np

from tamias.archive.blobs.frames import PayloadError, Text, compress, decompress

Numbers = np.ndarray[tuple[int], np.dtype[np.uint32]]

MOST_LINES = 2_000_000
"""In base or body: what bounds the memory for single lines."""
LEAST_SHARE = 0.8
"""Of the body's lines that its base must have."""
_BREAK = b"\n"
_HEADING_BYTES = 32


def encode_rows(body: bytes, base: bytes) -> bytes | None:
    """The payload; None where the two are no files of mostly the same lines."""
    if not all(0 < text.count(_BREAK) < MOST_LINES for text in (body, base)):
        return None
    lines, known = body.split(_BREAK), base.split(_BREAK)
    numbers = dict(zip(known, range(1, len(known) + 1), strict=True))
    matches = np.fromiter(map(numbers.get, lines, repeat(0)), np.uint32, len(lines))
    new = np.flatnonzero(matches == 0)
    if len(new) > (1 - LEAST_SHARE) * len(lines):
        return None
    width = (len(known).bit_length() + 7) // 8
    heading = b"%d %d\n" % (len(lines), width)
    return compress(heading + _planes(matches, width) + _BREAK.join(map(lines.__getitem__, new.tolist())))


def decode_rows(payload: bytes, size: int, base: Text) -> Text:
    """The body of that size."""
    content = decompress(payload, _HEADING_BYTES + 4 * (MOST_LINES + 1) + size)
    count, width, at = _heading(content)
    matches = _numbers(content[at : at + count * width], count, width)
    new = content[at + count * width :].split(_BREAK)
    pool, known = base.in_lines()
    fresh = matches == 0
    if int(matches.max()) > len(known) or int(fresh.sum()) > len(new):
        raise PayloadError("it names a line that is not there")
    order = known[matches - 1 + fresh]
    order[fresh] = np.arange(len(pool), len(pool) + int(fresh.sum()), dtype=np.uint32)
    pool += new
    return Text(pool=pool, order=order)


def _planes(numbers: Numbers, width: int) -> bytes:
    """Byte by byte: what is alike stands together, and compresses."""
    return numbers.astype("<u4").view(np.uint8).reshape(-1, 4)[:, :width].T.tobytes()


def _numbers(planes: bytes, count: int, width: int) -> Numbers:
    if len(planes) != count * width:
        raise PayloadError("its numbers of lines are cut off")
    whole = np.zeros((count, 4), np.uint8)
    whole[:, :width] = np.frombuffer(planes, np.uint8).reshape(width, count).T
    return whole.view("<u4").reshape(count).astype(np.uint32)


def _heading(content: bytes) -> tuple[int, int, int]:
    """Lines, bytes of a number, and where the numbers begin."""
    words = content[:_HEADING_BYTES].partition(_BREAK)[0]
    count, _, width = words.partition(b" ")
    if not (count.isdigit() and width in {b"1", b"2", b"3"} and 0 < int(count) <= MOST_LINES):
        raise PayloadError("it has no heading")
    return int(count), int(width), len(words) + 1
