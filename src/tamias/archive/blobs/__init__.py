"""Bodies by their digest, each kept once and small, and given back exactly.

Bytes stand in packs (`local`, `objects`), rows in PostgreSQL (`table`); `writer` and `reader` join the two.
"""

from tamias.archive.blobs.blob import Blob, BlobDamaged, BlobLost, BlobMissing, Codec, Prepared
from tamias.archive.blobs.local import LocalPacks
from tamias.archive.blobs.reader import BlobReader
from tamias.archive.blobs.table import insert_blobs
from tamias.archive.blobs.writer import BlobWriter

__all__ = [
    "Blob",
    "BlobDamaged",
    "BlobLost",
    "BlobMissing",
    "BlobReader",
    "BlobWriter",
    "Codec",
    "LocalPacks",
    "Prepared",
    "insert_blobs",
]
