"""H5 to H7: little on the wire, a lot when it is unpacked; and names that lead out of their folder."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable

import brotli
import zstandard

from tests.hostile.web.attack import Attack, AttackEvidence, Check, every, failed, read
from tests.hostile.web.wire import Answer, Wire, whole

ZEROS = 120_000_000
STRAY = "tamias-hostile-stray"
_TRIPLE = b'<http://packed.test/s> <http://packed.test/p> "unpacked" .\n'
_COMMENT = b"# " + b"x" * 997 + b"\n"
_CODED = "cannot be decoded"


class Bomb:
    """An answer with a body that takes time to make: made once, before the crawl."""

    def __init__(self, make: Callable[[], bytes], media_type: str, *headers: tuple[str, str]) -> None:
        self._make = make
        self._media_type = media_type
        self._headers = headers
        self._answer: Answer | None = None

    def prepare(self) -> None:
        """Makes the body."""
        self._answer = self._answer or whole(self._make(), self._media_type, *self._headers)

    async def __call__(self, wire: Wire) -> None:
        self.prepare()
        assert self._answer is not None
        await self._answer(wire)


def coded(coding: str, make: Callable[[], bytes]) -> Answer:
    """A bomb in the content coding."""
    return Bomb(make, "text/turtle", ("Content-Encoding", coding))


def zeros_in(compressor: Callable[[bytes], bytes]) -> Callable[[], bytes]:
    """A triple and then nothing for a long time, packed."""
    return lambda: compressor(_TRIPLE + _COMMENT * (ZEROS // len(_COMMENT)))


def overlapping() -> bytes:
    """A zip of a thousand members that share one body of a megabyte."""
    kept = io.BytesIO()
    with zipfile.ZipFile(kept, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("0.nt", b"# " + bytes(1_000_000))
        first = archive.infolist()[0]
        for number in range(1, 1000):
            twin = zipfile.ZipInfo(f"{number}.nt")
            for name in ("compress_type", "CRC", "compress_size", "file_size", "header_offset", "flag_bits"):
                setattr(twin, name, getattr(first, name))
            archive.filelist.append(twin)
            archive.NameToInfo[twin.filename] = twin
        archive._didModify = True  # type: ignore[attr-defined]
    return kept.getvalue()


def nested(depth: int) -> bytes:
    """Zips in zips."""
    content = _TRIPLE
    for level in range(depth):
        kept = io.BytesIO()
        with zipfile.ZipFile(kept, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("inner.zip" if level else "inner.nt", content)
        content = kept.getvalue()
    return content


def wide_zip() -> bytes:
    """Sixteen members of zeros, each harmless alone."""
    kept = io.BytesIO()
    with zipfile.ZipFile(kept, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(16):
            archive.writestr(f"{number}.nt", _TRIPLE + _COMMENT * 8000)
    return kept.getvalue()


def slipping_zip() -> bytes:
    """Names that climb out of any folder."""
    kept = io.BytesIO()
    names = (f"../../../../../../../../tmp/{STRAY}.nt", f"/tmp/{STRAY}-absolute.nt", "C:\\evil.nt", "a\0b.nt")
    with zipfile.ZipFile(kept, "w") as archive:
        for name in names:
            archive.writestr(name, _TRIPLE)
    return kept.getvalue()


def slipping_tar() -> bytes:
    """A link out of the folder and a member behind it, a device, and a name of 100 kB."""
    kept = io.BytesIO()
    with tarfile.open(fileobj=kept, mode="w") as archive:
        link = tarfile.TarInfo("out")
        link.type, link.linkname = tarfile.SYMTYPE, "/tmp"
        device = tarfile.TarInfo("zero")
        device.type, device.devmajor, device.devminor = tarfile.CHRTYPE, 1, 5
        archive.addfile(link)
        archive.addfile(device)
        for name in (f"out/{STRAY}-tar.nt", "long/" * 20_000 + "name.nt"):
            member = tarfile.TarInfo(name)
            member.size = len(_TRIPLE)
            archive.addfile(member, io.BytesIO(_TRIPLE))
    return kept.getvalue()


def no_strays(evidence: AttackEvidence) -> str | None:
    """No member was written to where its name leads."""
    return f"written: {evidence.strays}" if evidence.strays else None


def bomb(path: str) -> Check:
    """A file that is stopped while it is unpacked."""
    return failed(f"http://archives.test{path}", "open.max_ratio", "open.max_unpacked")


ATTACKS = (
    Attack(
        number="H5",
        name="codings",
        what="responses of some bytes that decode to 120 MB, in every content coding, also twice",
        limit="fetch.max_ratio beyond 10 MiB, fetch.max_bytes",
        seeds=("/gzip", "/deflate", "/br", "/twice", "/lies"),
        pages={
            "/gzip": coded("gzip", zeros_in(gzip.compress)),
            "/deflate": coded("deflate", zeros_in(zlib.compress)),
            "/br": coded("br", zeros_in(lambda data: brotli.compress(data, quality=1))),
            "/twice": coded("gzip, gzip", zeros_in(lambda data: gzip.compress(gzip.compress(data)))),
            "/lies": coded("gzip", lambda: b"this is no gzip"),
        },
        holds=every(
            *(
                failed(f"http://codings.test{path}", "max_ratio", "max_bytes")
                for path in ("/gzip", "/deflate", "/br", "/twice")
            ),
            failed("http://codings.test/lies", _CODED),
        ),
    ),
    Attack(
        number="H6",
        name="archives",
        what="files that unpack to gigabytes: gzip, bzip2, xz, zstd, zips in zips, members that overlap",
        limit="open.max_ratio beyond 16 MiB, open.max_unpacked, open.max_archives, one meter for all layers",
        seeds=("/a.nt.gz", "/a.nt.bz2", "/a.nt.xz", "/a.nt.zst", "/wide.zip", "/deep.zip", "/overlap.zip"),
        pages={
            "/a.nt.gz": Bomb(zeros_in(gzip.compress), "application/gzip"),
            "/a.nt.bz2": Bomb(zeros_in(bz2.compress), "application/x-bzip2"),
            "/a.nt.xz": Bomb(zeros_in(lambda data: lzma.compress(data, preset=0)), "application/x-xz"),
            "/a.nt.zst": Bomb(zeros_in(zstandard.ZstdCompressor().compress), "application/zstd"),
            "/wide.zip": Bomb(wide_zip, "application/zip"),
            "/deep.zip": Bomb(lambda: nested(6), "application/zip"),
            "/overlap.zip": Bomb(overlapping, "application/zip"),
        },
        holds=every(
            *(bomb(path) for path in ("/a.nt.gz", "/a.nt.bz2", "/a.nt.xz", "/a.nt.zst", "/wide.zip")),
            read("http://archives.test/deep.zip", "open.max_archives", quads=0),
            read("http://archives.test/overlap.zip", "overlap", "share", quads=0),
        ),
    ),
    Attack(
        number="H7",
        name="slips",
        what="members named ../../tmp/x, absolute names, links, devices, names of 100 kB",
        limit="members are read as streams and never written under their names",
        seeds=("/slip.zip", "/slip.tar"),
        pages={
            "/slip.zip": Bomb(slipping_zip, "application/zip"),
            "/slip.tar": Bomb(slipping_tar, "application/x-tar"),
        },
        holds=every(
            no_strays,
            read("http://slips.test/slip.zip"),
            read("http://slips.test/slip.tar"),
        ),
    ),
)
