"""What happens to files on their way: a wrong type, a cut, a bad line, another encoding."""

from collections.abc import Callable

Mutation = Callable[[bytes], bytes]

BAD_LINE = b"\n<http://example.org/bad> this is no statement <\n"


def cut(data: bytes) -> bytes:
    """The first two thirds, as a connection that broke leaves it."""
    return data[: len(data) * 2 // 3]


def bad_line(data: bytes) -> bytes:
    """One line of nonsense in the middle."""
    lines = data.splitlines(keepends=True)
    middle = len(lines) // 2
    return b"".join(lines[:middle]) + BAD_LINE + b"".join(lines[middle:])


def latin_1(data: bytes) -> bytes:
    """In an encoding that nobody declares."""
    return data.decode("utf-8", "replace").encode("latin-1", "replace")


def utf_16(data: bytes) -> bytes:
    """With a byte order mark, so that it can be known."""
    return data.decode("utf-8", "replace").encode("utf-16")


MUTATIONS: dict[str, Mutation] = {each.__name__: each for each in (cut, bad_line, latin_1, utf_16)}

WRONG_ENDING = {
    ".nt": ".rdf",
    ".nq": ".ttl",
    ".ttl": ".rdf",
    ".trig": ".nt",
    ".rdf": ".ttl",
    ".owl": ".nt",
} | {
    ".jsonld": ".ttl",
    ".n3": ".rdf",
}
"""What a server may call it by mistake."""
