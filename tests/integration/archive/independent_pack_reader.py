"""Reads packs with `docs/blobs.md` alone: nothing here comes from Tamias.

`read_packs(folder)` gives every body in the packs by its SHA-256; of several records the newest counts.
"""

import hashlib
import json
import zlib

import zstandard

DESCRIPTION, RAW = bytes.fromhex("5d2a4d18"), bytes.fromhex("5b2a4d18")


def read_packs(folder):
    records = {}
    for path in sorted(folder.glob("*.pack")):  # names sort by the time the pack was started
        for told, payload in _records(path.read_bytes()):
            records[told["sha256"]] = (told, payload)
            if told["codec"] == "group":
                for line in _frames(payload)[0].splitlines()[:-1]:
                    sha256, size = line.decode().split(" ")
                    records[sha256] = ({"codec": "part", "base": told["sha256"], "size": int(size)}, b"")
    bodies = {}
    for sha256 in records:
        body = _body(sha256, records, bodies)
        assert hashlib.sha256(body).hexdigest() == sha256
        assert len(body) == records[sha256][0]["size"]
    return bodies


def _records(pack):
    at = 0
    while at < len(pack):
        assert pack[at : at + 4] == DESCRIPTION
        length = int.from_bytes(pack[at + 4 : at + 8], "little")
        text, check = pack[at + 8 : at + 8 + length - 8], pack[at + length : at + 8 + length]
        assert int(check, 16) == zlib.crc32(text)
        told = json.loads(text)
        at += 8 + length
        yield told, pack[at : at + told["payload"]]
        at += told["payload"]


def _body(sha256, records, bodies):
    if sha256 not in bodies:
        told, payload = records[sha256]
        base = _body(told["base"], records, bodies) if "base" in told else None
        bodies[sha256] = _CODECS[told["codec"]](payload, base, sha256)
    return bodies[sha256]


def _frames(payload):
    """The list of a group, unpacked, and the frame behind it."""
    first = zstandard.ZstdDecompressor().decompressobj()
    return first.decompress(payload), first.unused_data


def _unpack(frame, base=None):
    prefix = zstandard.ZstdCompressionDict(base, zstandard.DICT_TYPE_RAWCONTENT) if base else None
    return zstandard.ZstdDecompressor(prefix, max_window_size=2**31).decompress(frame)


def _group(payload, base, _sha256):
    listing, bodies = _frames(payload)
    return listing + _unpack(bodies, base)


def _part(_payload, group, sha256):
    listing, _, bodies = group.partition(b"\n\n")
    start = 0
    for line in listing.decode().split("\n"):
        name, size = line.split(" ")
        if name == sha256:
            return bodies[start : start + int(size)]
        start += int(size)
    raise AssertionError(sha256)


def _rows(payload, base, _sha256):
    content = _unpack(payload)
    heading, _, rest = content.partition(b"\n")
    count, width = map(int, heading.split())
    planes = [rest[plane * count : (plane + 1) * count] for plane in range(width)]
    numbers = [sum(plane[line] << 8 * at for at, plane in enumerate(planes)) for line in range(count)]
    known, new = base.split(b"\n"), iter(rest[width * count :].split(b"\n"))
    return b"\n".join(known[number - 1] if number else next(new) for number in numbers)


_CODECS = {
    "raw": lambda payload, _base, _sha256: payload[8:],
    "zstd": lambda payload, _base, _sha256: _unpack(payload),
    "zdelta": lambda payload, base, _sha256: _unpack(payload, base),
    "rows": _rows,
    "group": _group,
    "part": _part,
}
