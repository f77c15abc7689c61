"""Trees over the versions of a day: texts about versions, and hashes of hashes. Pure."""

from collections.abc import Sequence
from hashlib import sha256

from tamias.archive.moments import rfc3339


def version_text(url: str, captured_at: int, digest: str) -> str:
    """Return what is stamped of a version; `proof.sql` makes the same text.

    >>> version_text("http://a.example/", 0, "ab12").splitlines()[2:]
    ['captured: 1970-01-01T00:00:00.000Z', 'sha256: ab12']
    """
    return f"tamias-version: 1\nurl: {url}\ncaptured: {rfc3339(captured_at)}\nsha256: {digest}\n"


def root_of(leaves: Sequence[bytes]) -> bytes:
    """Return the root of a tree."""
    return _levels(leaves)[-1][0]


def path_of(leaves: Sequence[bytes], leaf: bytes) -> str:
    """Return the way from a leaf to the root, a line for each step; `-` is the hash so far.

    >>> leaves = [bytes([each]) * 32 for each in range(3)]
    >>> [line[:8] for line in path_of(leaves, leaves[1]).splitlines()], len(path_of(leaves, leaves[2]))
    (['00000000', '- 020202'], 67)
    """
    place, lines = list(leaves).index(leaf), []
    for level in _levels(leaves)[:-1]:
        beside = place ^ 1
        if beside < len(level):
            lines.append(f"{level[beside].hex()} -\n" if beside < place else f"- {level[beside].hex()}\n")
        place //= 2
    return "".join(lines)


def _levels(leaves: Sequence[bytes]) -> list[list[bytes]]:
    """Return all levels: a node is the SHA-256 of two hexadecimal hashes; a single one moves up."""
    levels = [list(leaves)]
    while len(below := levels[-1]) > 1:
        pairs = [below[place : place + 2] for place in range(0, len(below), 2)]
        levels.append([_node(*pair) if len(pair) > 1 else pair[0] for pair in pairs])
    return levels


def _node(left: bytes, right: bytes) -> bytes:
    return sha256((left.hex() + right.hex()).encode()).digest()
