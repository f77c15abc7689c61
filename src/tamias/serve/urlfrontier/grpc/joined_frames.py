"""Data frames of one stream that follow each other, joined before the HTTP/2 library sees them.

Clients send each message in a frame of its own, and a frame takes the library 10 µs, whatever is in it.
"""

_PREFACE = 24
"""Bytes that a client sends before its first frame."""
_HEAD = 9
LARGEST = 16_384
"""Bytes of a frame: what HTTP/2 allows where nothing else is said."""
_PLAIN_DATA = b"\0\0"
"""Kind and flags of a data frame without padding that does not end its stream."""


class FrameJoiner:
    """Of one connection. What is joined takes as much of the client's windows as its parts."""

    def __init__(self) -> None:
        self._preface_left = _PREFACE
        self._rest = b""

    def join(self, data: bytes) -> bytes:
        """What the library is given for the bytes that came; the begin of a frame waits for its end."""
        preface = data[: self._preface_left]
        self._preface_left -= len(preface)
        data = self._rest + data[len(preface) :]
        joined, run, stream, size = [preface], list[bytes](), b"", 0
        at, end = 0, len(data)
        while end - at >= _HEAD:
            length = data[at] << 16 | data[at + 1] << 8 | data[at + 2]
            after = at + _HEAD + length
            if after > end:
                break
            if data[at + 3 : at + 5] == _PLAIN_DATA and length:
                if data[at + 5 : at + _HEAD] != stream or size + length > LARGEST:
                    joined += _frame(run, stream, size)
                    run, stream, size = [], data[at + 5 : at + _HEAD], 0
                run.append(data[at + _HEAD : after])
                size += length
            else:
                joined += _frame(run, stream, size)
                run, stream, size = [], b"", 0
                joined.append(data[at:after])
            at = after
        joined += _frame(run, stream, size)
        self._rest = data[at:]
        if len(self._rest) >= _HEAD and int.from_bytes(self._rest[:3], "big") > LARGEST:
            joined.append(self._rest)  # the library says what is wrong with it
            self._rest = b""
        return b"".join(joined)


def _frame(run: list[bytes], stream: bytes, size: int) -> list[bytes]:
    return [size.to_bytes(3, "big"), _PLAIN_DATA, stream, *run] if run else []
