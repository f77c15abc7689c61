"""Looks for bytes in every file of a folder, also in zstd frames and gzip members. Not of Tamias.

A frame that was made with a prefix is tried with each of the bodies given.
"""

import hashlib
import zlib

import zstandard

ZSTD, GZIP = bytes.fromhex("28b52ffd"), bytes.fromhex("1f8b08")
LARGEST = 1 << 28
_searched = {}
"""What was found, by digests of file and prefixes: copies of one archive have most files in common."""


def find_bytes(folder, wanted, prefixes=(), leave_out=()):
    """The files that have them, and how."""
    found, search = [], hashlib.sha256(b"".join(b"%d:%s" % (len(each), each) for each in [wanted, *prefixes]))
    dictionaries = [
        zstandard.ZstdCompressionDict(each, zstandard.DICT_TYPE_RAWCONTENT)
        for each in prefixes
        if len(each) >= 8
    ]
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and not any(part in leave_out for part in path.parts):
            content = path.read_bytes()
            if wanted in content:
                found.append((path.name, "plain"))
            key = search.digest() + hashlib.sha256(content).digest()
            if key not in _searched:
                _searched[key] = list(_packed(content, wanted, dictionaries))
            found += [(path.name, how) for how in _searched[key]]
    return found


def _packed(content, wanted, dictionaries):
    for at in _places(content, ZSTD):
        frame = content[at:]
        if any(wanted in plain for plain in _unpacked(frame, dictionaries)):
            yield f"zstd at {at}"
    for at in _places(content, GZIP):
        try:
            if wanted in zlib.decompressobj(31).decompress(content[at:], LARGEST):
                yield f"gzip at {at}"
        except zlib.error:
            pass


def _places(content, magic):
    at = content.find(magic)
    while at >= 0:
        yield at
        at = content.find(magic, at + 1)


def _unpacked(frame, dictionaries):
    """What a frame may hold; one that needs no prefix holds the same with each."""
    for dictionary in (None, *dictionaries):
        try:
            unpacking = zstandard.ZstdDecompressor(dictionary, max_window_size=2**31).decompressobj()
            yield unpacking.decompress(frame)
        except zstandard.ZstdError:
            continue
        if dictionary is None:
            return
