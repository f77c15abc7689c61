"""Inputs that are almost right: seeds with bytes changed, cut, doubled and put together."""

from collections.abc import Sequence
from random import Random

from hypothesis import strategies as st

INTERESTING = (
    b"\0",
    b"\xff",
    b"\n",
    b"\x80",
    b"<",
    b"]]>",
    b"%",
    b"\\",
    b'"',
    b"[" * 300,
    b"\xed\xa0\x80",
    b"9" * 25,
)
MOST_BYTES = 1 << 14


def mutation(seeds: Sequence[bytes], chance: Random) -> bytes:
    """One of the seeds, changed in a few places."""
    data = bytearray(chance.choice(seeds) if seeds else b"")
    for _ in range(1 + chance.getrandbits(3)):
        _change(data, seeds, chance)
    return bytes(data[:MOST_BYTES])


def _change(data: bytearray, seeds: Sequence[bytes], chance: Random) -> None:
    start = chance.randrange(len(data) + 1)
    end = min(len(data), start + (1 << chance.randrange(6)))
    match chance.randrange(6):
        case 0 if data:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        case 1:
            del data[start:end]
        case 2:
            data[start:start] = data[start:end] * (1 + chance.randrange(20))
        case 3:
            data[start:end] = chance.choice(INTERESTING)
        case 4:
            data[start:start] = chance.randbytes(1 << chance.randrange(4))
        case 5 if seeds:
            other = chance.choice(seeds)
            cut = chance.randrange(len(other) + 1)
            data[start:] = other[cut:]


def mutated(seeds: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Mutations of the seeds, each told by a number."""
    return st.integers(0, 1 << 32).map(lambda number: mutation(seeds, Random(number)))
