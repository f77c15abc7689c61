"""Bodies at hand: those used last, within a number of bytes."""

from collections import OrderedDict


class BodyCache:
    """Forgets what was not used for longest."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._bodies: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0

    def get(self, sha256: str) -> bytes | None:
        """A body, if it is at hand."""
        body = self._bodies.get(sha256)
        if body is not None:
            self._bodies.move_to_end(sha256)
        return body

    def put(self, sha256: str, body: bytes) -> None:
        """Keeps a body; one that is too large for all the room is left out."""
        if sha256 in self._bodies or len(body) > self._most:
            return
        self._bodies[sha256] = body
        self._bytes += len(body)
        while self._bytes > self._most:
            self._bytes -= len(self._bodies.popitem(last=False)[1])

    def forget(self, sha256: str) -> None:
        """Drops a body."""
        body = self._bodies.pop(sha256, None)
        self._bytes -= len(body) if body is not None else 0
