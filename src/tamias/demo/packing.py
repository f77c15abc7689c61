"""Files as the web packs them."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable

import brotli
import zstandard


def zipped(name: str, data: bytes) -> bytes:
    """A zip archive of one file, without the time of day."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def tarred(name: str, data: bytes) -> bytes:
    """A tar archive of one file, without the time of day."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


PACKERS: dict[str, Callable[[str, bytes], bytes]] = {
    "": lambda _, data: data,
    "gz": lambda _, data: gzip.compress(data, mtime=0),
    "bz2": lambda _, data: bz2.compress(data),
    "zip": zipped,
    "xz": lambda _, data: lzma.compress(data),
    "zst": lambda _, data: zstandard.compress(data),
    "br": lambda _, data: bytes(brotli.compress(data, quality=5)),
    "tar": tarred,
    "tar.gz": lambda name, data: gzip.compress(tarred(name, data), mtime=0),
}
PACKED_TYPES = {
    "gz": "application/gzip",
    "bz2": "application/x-bzip2",
    "zip": "application/zip",
    "xz": "application/x-xz",
    "zst": "application/zstd",
    "br": "application/x-brotli",
    "tar": "application/x-tar",
    "tar.gz": "application/gzip",
}
