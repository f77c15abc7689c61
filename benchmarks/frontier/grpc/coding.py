"""The few messages that the benchmark sends, written by hand: it shares no code with what it measures."""

SERVICE = "urlfrontier.URLFrontier"


def item(name: str, url: str, key: str) -> bytes:
    """A `URLItem` that was discovered."""
    return _nested(1, _nested(1, _info(url, key))) + _text(3, name)


def done(name: str, url: str, key: str) -> bytes:
    """A `URLItem` that is known, and not to be visited again."""
    return _nested(2, _nested(1, _info(url, key))) + _text(3, name)


def batch(name: str, infos: list[tuple[str, str]]) -> bytes:
    """A `DiscoveredBatch` of URLs with their keys."""
    return _text(1, name) + b"".join(_nested(2, _info(url, key)) for url, key in infos)


def wish(urls: int, queues: int, hold: int) -> bytes:
    """`GetParams` for any crawl.

    >>> wish(10, 100, 300)
    b'\\x08\\n\\x10d \\xac\\x02'
    """
    return _number(1, urls) + _number(2, queues) + _number(4, hold)


def _info(url: str, key: str) -> bytes:
    return _text(1, url) + _text(2, key) + _text(4, "DEFAULT")


def _text(field: int, value: str) -> bytes:
    return _nested(field, value.encode())


def _nested(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value) if value else b""


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    written.append(value)
    return bytes(written)
