"""The three checksums of HDT."""

from google_crc32c import extend

_SLICE = 1 << 24


def _table(polynomial: int, *, reflected: bool) -> list[int]:
    return [_entry(byte, polynomial, reflected=reflected) for byte in range(256)]


def _entry(byte: int, polynomial: int, *, reflected: bool) -> int:
    for _ in range(8):
        if reflected:
            byte = (byte >> 1) ^ (polynomial if byte & 1 else 0)
        else:
            byte = ((byte << 1) ^ (polynomial if byte & 0x80 else 0)) & 0xFF
    return byte


_CRC8 = _table(0x07, reflected=False)
_CRC16 = _table(0xA001, reflected=True)


def crc8(data: bytes) -> bytes:
    """Of the few bytes before an array or a section."""
    value = 0
    for byte in data:
        value = _CRC8[value ^ byte]
    return bytes((value,))


def crc16(data: bytes) -> bytes:
    """Of a control information."""
    value = 0
    for byte in data:
        value = (value >> 8) ^ _CRC16[(value ^ byte) & 0xFF]
    return value.to_bytes(2, "little")


def crc32c(data: memoryview | bytes) -> bytes:
    """Of the data of an array or a section."""
    value = 0
    for start in range(0, len(data), _SLICE):
        value = extend(value, bytes(data[start : start + _SLICE]))
    return value.to_bytes(4, "little")
