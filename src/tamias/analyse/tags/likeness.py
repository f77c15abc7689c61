"""SimHash: a number of 64 bits for the words of a page, which differs in few bits where few words differ."""

import re
from hashlib import blake2b

NEAR = 3
"""Two pages are almost the same when their numbers differ in at most so many bits."""
_FEWEST_WORDS = 20
_MOST_WORDS = 20_000
_UNSEEN = re.compile(rb"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.IGNORECASE | re.DOTALL)
_WORD = re.compile(r"\w+")


def page_hash(body: bytes) -> int | None:
    """The number of a page, signed; None where there are too few words to tell pages apart."""
    import html

    text = html.unescape(_UNSEEN.sub(b" ", body).decode("utf-8", "replace")).lower()
    words = [found[0] for found in _WORD.finditer(text)][:_MOST_WORDS]
    return None if len(words) < _FEWEST_WORDS else simhash(words)


def simhash(words: list[str]) -> int:
    """Each three words in a row vote for the bits of their hash."""
    rows = {" ".join(words[at : at + 3]) for at in range(max(1, len(words) - 2))}
    hashes = b"".join(blake2b(row.encode(), digest_size=8).digest() for row in rows)
    import numpy as np

    bits = np.unpackbits(np.frombuffer(hashes, dtype=np.uint8)).reshape(len(rows), 64)
    votes = bits.sum(axis=0, dtype=np.int64) * 2 > len(rows)
    return int.from_bytes(np.packbits(votes).tobytes(), "big", signed=True)


def quarters(number: int) -> list[int]:
    """The four quarters of the bits, each with its place: numbers that are near share one.

    >>> len(set(quarters(0)))
    4
    """
    unsigned = number & (2**64 - 1)
    return [place << 16 | (unsigned >> 16 * place) & 0xFFFF for place in range(4)]


def distance(one: int, other: int) -> int:
    """In how many bits two numbers differ.

    >>> distance(-1, -2)
    1
    """
    return ((one ^ other) & (2**64 - 1)).bit_count()
