"""The `rows` codec: the lines of a base by their numbers, in any order, and the lines that are new.

`docs/blobs.md` tells what stands in a payload.
"""

from itertools import repeat

import numpy as np

from tamias.archive.blobs.frames import PayloadError, Text, compress, decompress

MOST_PADDING = 3
"""The matrix may be so many times as large as the text; else some lines are much longer than others."""
_LINE_BREAK = 10
_WORD = 8
_TURNS = 4
_MOST_BITS = 24

Places = np.ndarray[tuple[int], np.dtype[np.int64]]
Words = np.ndarray[tuple[int], np.dtype[np.uint64]]
Matrix = np.ndarray[tuple[int, int], np.dtype[np.uint64]]
Numbers = np.ndarray[tuple[int], np.dtype[np.uint32]]


class LineStarts:
    """The starts and lengths of the lines of a text."""

    def __init__(self, text: bytes) -> None:
        breaks = np.flatnonzero(np.frombuffer(text, np.uint8) == _LINE_BREAK)
        self.text = text
        self.starts: Places = np.concatenate([[0], breaks + 1])
        self.lengths: Places = np.append(breaks, len(text)) - self.starts
        self.width = int(self.lengths.max()) // _WORD + 1
        """Words of the longest."""

    def __len__(self) -> int:
        return len(self.starts)

    def line(self, number: int) -> bytes:
        """A line by its number, from 0."""
        start = int(self.starts[number])
        return self.text[start : start + int(self.lengths[number])]

    def matrix(self, width: int) -> Matrix:
        """A row of so many words for each line, with zeros behind its end."""
        size = width * _WORD
        whole = np.ndarray((len(self.text) + 1,), f"V{size}", self.text + bytes(size), strides=(1,))
        rows: Matrix = whole[self.starts].view("<u8").reshape(len(self), width)
        rows &= _masks(size)[self.lengths]
        return rows


def match(lines: LineStarts, known: LineStarts) -> Numbers | None:
    """Return for each line the number, from 1, of an equal line of `known`, or 0.

    None when the lines are too uneven; a few lines may not be found though they are there.
    """
    width = max(lines.width, known.width)
    if any(len(each) * width * _WORD > MOST_PADDING * len(each.text) + 2**20 for each in (lines, known)):
        return None
    rows, others = lines.matrix(width), known.matrix(width)
    found = _candidates(_hashes(rows, lines.lengths), _hashes(others, known.lengths))
    places = np.flatnonzero(found)
    numbers = found[places] - 1
    same = lines.lengths[places] == known.lengths[numbers]
    same &= (rows[places] == others[numbers]).all(axis=1)
    found[places[~same]] = 0
    return found.astype(np.uint32)


def _masks(size: int) -> Matrix:
    """Return for each length a mask that leaves out what is behind it."""
    masks: Matrix = (np.tri(size + 1, size, -1, np.uint8) * np.uint8(255)).view("<u8")
    return masks


def _hashes(rows: Matrix, lengths: Places) -> Words:
    """A sum of products with odd numbers that look like chance; its upper bits are spread best."""
    chance = np.random.default_rng(7)
    weights = chance.integers(0, 2**64, rows.shape[1], np.uint64) | np.uint64(1)
    sums: Words = rows @ weights + lengths.astype(np.uint64) * weights[0]
    return sums


def _candidates(wanted: Words, known: Words) -> Places:
    """Lines of the same hash, from 1, by a table. Those that lost their place in it have another turn."""
    found: Places = np.zeros(len(wanted), np.int64)
    asking, offering = np.arange(len(wanted)), np.arange(len(known))
    bits = min(_MOST_BITS, (8 * len(known)).bit_length())
    for turn in range(_TURNS):
        shift, low = np.uint64(64 - bits - 5 * turn), np.uint64((1 << bits) - 1)
        slots = (known[offering] >> shift) & low
        table = np.zeros(1 << bits, np.int64)
        table[slots] = offering + 1
        offered = table[(wanted[asking] >> shift) & low]
        right = (offered > 0) & (known[offered - 1] == wanted[asking])
        found[asking[right]] = offered[right]
        lost = known[table[slots] - 1] != known[offering]
        asking, offering = asking[~right], offering[lost]
        if not len(asking) or not len(offering):
            break
    return found


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
    lines, known = LineStarts(body), LineStarts(base)
    matches = match(lines, known)
    if matches is None:
        matches = _matched_one_by_one(body, base)
    new = np.flatnonzero(matches == 0)
    if len(new) > (1 - LEAST_SHARE) * len(lines):
        return None
    width = (len(known).bit_length() + 7) // 8
    heading = b"%d %d\n" % (len(lines), width)
    return compress(heading + _planes(matches, width) + _BREAK.join(map(lines.line, new.tolist())))


def _matched_one_by_one(body: bytes, base: bytes) -> Numbers:
    """Match lines as `match` does, however long single lines are."""
    lines, known = body.split(_BREAK), base.split(_BREAK)
    numbers = dict(zip(known, range(1, len(known) + 1), strict=True))
    return np.fromiter(map(numbers.get, lines, repeat(0)), np.uint32, len(lines))


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
