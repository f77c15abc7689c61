"""Parts of the most frequent messages, found and written without a parser: the bytes of a URL, and an answer.

Only what clients usually write is understood. All else is for the parser, which also says what is wrong.
"""

_DISCOVERED, _ITEM_ID = 0x0A, 0x1A
"""The first byte of a field of `URLItem`: its number, and that a length follows."""
_BATCH_ID, _BATCH_INFO = 0x0A, 0x12
_SHORT = 0x80
"""Lengths below this take one byte, below its square two."""
_HEADS = tuple(bytes((0x0A, length)) for length in range(_SHORT))
"""Of a `URLInfo` with a URL that is not long: its first field."""


def split_item(raw: bytes) -> tuple[bytes, bytes] | None:
    """The ID and the discovered URL of a `URLItem` that has nothing else.

    >>> split_item(b"\\x0a\\x02\\x0a\\x00\\x1a\\x011"), split_item(b"\\x12\\x00\\x1a\\x011")
    ((b'1', b'\\n\\x00'), None)
    """
    try:
        if raw[0] != _DISCOVERED:
            return None
        length, at = _length(raw, 1)
        end = at + length
        if raw[end] != _ITEM_ID:
            return None
        size, start = _length(raw, end + 1)
    except IndexError:
        return None
    name = raw[start:]
    return (name, raw[at:end]) if len(name) == size > 0 and name.isascii() else None


def split_batch(raw: bytes) -> tuple[bytes, list[bytes]] | None:
    """The ID and the URLs of a `DiscoveredBatch`.

    >>> split_batch(b"\\x0a\\x011\\x12\\x00\\x12\\x01a"), split_batch(b"\\x0a\\x011\\x12\\x02a")
    ((b'1', [b'', b'a']), None)
    """
    name, infos = b"", []
    at, whole = 0, len(raw)
    try:
        while at < whole:
            field = raw[at]
            length = raw[at + 1]
            at += 2
            if length >= _SHORT:
                length, at = _length(raw, at - 1)
            end = at + length
            if end > whole:
                return None
            if field == _BATCH_INFO:
                infos.append(raw[at:end])
            elif field == _BATCH_ID:
                name = raw[at:end]
            else:
                return None
            at = end
    except IndexError:
        return None
    return (name, infos) if name.isascii() else None


def ack(name: bytes, status: int) -> bytes:
    """An `AckMessage`.

    >>> ack(b"1", 0), ack(b"1", 1)
    (b'\\n\\x011', b'\\n\\x011\\x10\\x01')
    """
    written = b"\x0a" + _written(len(name)) + name
    return written + bytes((0x10, status)) if status else written


def url_info(url: bytes, tail: bytes) -> bytes:
    """A `URLInfo` of a URL and its other fields.

    >>> url_info(b"a:b", b"\\x12\\x01k")
    b'\\n\\x03a:b\\x12\\x01k'
    """
    length = len(url)
    return (_HEADS[length] if length < _SHORT else b"\x0a" + _written(length)) + url + tail


def _length(raw: bytes, at: int) -> tuple[int, int]:
    """A length of at most four bytes, and where it ends; a longer one is left to the parser."""
    value = 0
    for shift in range(0, 28, 7):
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < _SHORT:
            return value, at
    raise IndexError


def _written(number: int) -> bytes:
    if number < _SHORT:
        return bytes((number,))
    return bytes((number & 0x7F | _SHORT,)) + _written(number >> 7)
