"""Files and bodies from outside: seeds, indexes, archives, lists of directories, and their types."""

import codecs
import hashlib

from fuzzing.documents import scratch
from tamias.content.containers.documents import documents
from tamias.content.containers.limits import OpenLimits
from tamias.content.sniff import found_charset, found_type
from tamias.features.ftp.fetcher import TooLong, bare_line, listing, machine_line, plain_line
from tamias.features.warc.cdxj import line, parsed
from tamias.features.warc.seeds import WarcSeeds
from tamias.model.capture import Body
from tamias.model.document import Document, LimitExceeded
from tamias.model.errors import TamiasError
from tamias.model.url import fetch_url
from tamias.protocols import SeedSource
from tamias.seeds.files import CdxSeeds, ListSeeds, UrlFrontierSeeds

LIMITS = OpenLimits(max_bytes=8 << 20, ratio_after=1 << 20, max_members=200, max_memory=8 << 20)
CHUNK = 1 << 16
MOST_SEEDS = 1000


def _seeds(source: SeedSource, data: bytes) -> None:
    """A file gives addresses that are URLs, or is refused in one sentence."""
    scratch().write_bytes(data)
    try:
        for count, seed in enumerate(source.seeds(str(scratch()))):
            fetch_url(seed.address)
            assert count <= max(MOST_SEEDS, len(data))
    except TamiasError:
        return


def cdx(data: bytes) -> None:
    """Indexes of web archives as seeds, and the lines of our own."""
    _seeds(CdxSeeds(), data)
    told = parsed(data)
    if told is not None:
        time, entry = told
        assert parsed(line(entry, time.replace(" ", ""))) is not None


def warc(data: bytes) -> None:
    """The addresses in WARC files."""
    _seeds(WarcSeeds(), data)


def seed_list(data: bytes) -> None:
    """Lists of seeds: lines, CSV, JSON lines."""
    _seeds(ListSeeds(), data)


def urlfrontier_lines(data: bytes) -> None:
    """The JSON lines of a URLFrontier."""
    _seeds(UrlFrontierSeeds(), data)


def found(data: bytes) -> None:
    """Type and charset: always a type, and a charset that Python knows; told type and name are in front."""
    told, _, rest = data.partition(b"\n")
    name, _, head = rest.partition(b"\n")
    for start in (data, head):
        media_type = found_type(start, told.decode("latin-1"), name.decode("latin-1"))
        assert media_type
        charset = found_charset(start, told.decode("latin-1"), media_type)
        assert charset is None or codecs.lookup(charset)


def archive(data: bytes) -> None:
    """Anything packed: members are read within the limits, whatever they say of themselves."""
    body = Body(size=len(data), sha256=hashlib.sha256(data).hexdigest(), data=data)
    read = 0
    try:
        for part in documents(body, url="http://example.org/x", declared_type=None, limits=LIMITS):
            if isinstance(part, Document):
                while piece := part.stream.read(CHUNK):
                    read += len(piece)
                assert part.member is None or "\0" not in part.member
    except LimitExceeded as limit:
        assert "open." in str(limit)  # noqa: PT017
    assert read <= max(LIMITS.max_bytes, len(data)) + CHUNK


def ftp_listing(data: bytes) -> None:
    """What an FTP server says is in a directory, in all three forms."""
    for form in (machine_line, plain_line, bare_line):
        try:
            lines = b"".join(listing(data, form, 1000).lines())
        except TooLong:
            continue
        assert lines.count(b"\n") <= 1001
