"""The data frames of a connection, taken out of what the HTTP/2 library reads, and the windows they use.

Clients send each message in a frame of its own, and a frame takes the library 10 µs, whatever is in it.
"""

from collections.abc import Iterator

_PREFACE = 24
"""Bytes that a client sends before its first frame."""
_HEAD = 9
LARGEST = 16_384
"""Bytes of a frame: what HTTP/2 allows where nothing else is said."""
_DATA, _PLAIN, _PADDED = 0, 0, 8
"""The kind of data frames, and the flags of those that do not end their stream."""

_LAST_STREAM = 2**31 - 1

StreamData = tuple[int, bytes, int]
"""A stream, what frames that follow each other say in it, and the bytes of the client's windows they took."""


class FrameSplitter:
    """Of one connection."""

    def __init__(self) -> None:
        self._preface_left = _PREFACE
        self._rest = b""

    def split(self, data: bytes) -> Iterator[StreamData | bytes]:
        """Data, and all else as the library reads it, in order; the begin of a frame waits for its end."""
        preface = data[: self._preface_left]
        self._preface_left -= len(preface)
        data = self._rest + data[len(preface) :]
        others, run, stream, size = [preface] if preface else [], list[bytes](), b"", 0
        at, end = 0, len(data)
        while end - at >= _HEAD:
            length = data[at] << 16 | data[at + 1] << 8 | data[at + 2]
            start, after = at + _HEAD, at + _HEAD + length
            if after > end:
                break
            content = _content(data, at, start, after) if 0 < length <= LARGEST else None
            if run and (content is None or data[at + 5 : start] != stream):
                yield int.from_bytes(stream, "big"), b"".join(run), size
                run, size = [], 0
            if content is None:
                others.append(data[at:after])
            else:
                if others:
                    yield b"".join(others)
                    others = []
                run.append(content)
                stream, size = data[at + 5 : start], size + length
            at = after
        if run:
            yield int.from_bytes(stream, "big"), b"".join(run), size
        self._rest = data[at:]
        if len(self._rest) >= _HEAD and int.from_bytes(self._rest[:3], "big") > LARGEST:
            others.append(self._rest)  # the library says what is wrong with it
            self._rest = b""
        if others:
            yield b"".join(others)


def _content(data: bytes, at: int, start: int, after: int) -> bytes | None:
    """Of a data frame that does not end its stream; None of others, and of those that are wrong."""
    if data[at + 3] != _DATA or not 0 < int.from_bytes(data[at + 5 : start], "big") <= _LAST_STREAM:
        return None
    if data[at + 4] == _PLAIN:
        return data[start:after]
    padding = data[start]
    if data[at + 4] != _PADDED or start + 1 + padding > after:
        return None
    return data[start + 1 : after - padding]


class ReceiveWindow:
    """What a client may send in a stream, or in all of them, before some of it is consumed."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._taken = self._consumed = 0

    def take(self, length: int) -> bool:
        """So many bytes came; whether they were allowed."""
        self._taken += length
        return self._taken <= self._size

    def consume(self, length: int) -> int:
        """So many bytes are consumed; how many more the client is told to send, if it is worth a frame."""
        self._consumed += length
        if 4 * self._consumed < self._size:
            return 0
        more, self._consumed = self._consumed, 0
        self._taken -= more
        return more
