"""Versions as WARC files: answers with the bodies that the archive keeps, and references to the same body."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tamias import __version__
from tamias.archive.moments import digits
from tamias.archive.reader.content import Content
from tamias.archive.reader.library import ArchiveReader
from tamias.features.exports.holdings import holdings
from tamias.features.exports.usage_gate import UsageGate
from tamias.features.warc.cdxj import entries
from tamias.features.warc.index import WarcExtent
from tamias.features.warc.warc_files import WarcPart, warc_parts
from tamias.features.warc.warc_records import Fields
from tamias.features.warc.warc_writer import WarcWriter
from tamias.model.capture import Body, Capture, CaptureRecord, Hop, Outcome
from tamias.model.resource import Version

IN_MEMORY = 8 << 20
"""Larger bodies go by way of a file."""


def version_warcs(
    archive: ArchiveReader, urls: Sequence[str], gate: UsageGate, folder: Path, crawled: Path | None
) -> Iterator[WarcPart]:
    """Versions as WARC files of a scratch folder, each gone when the next is asked for; its index stays.

    What stands in the WARC files of `crawled` already is left out.
    """
    known = _answers(crawled) if crawled else frozenset()
    last: str | None = None
    with WarcWriter(
        folder, "versions", agent="", accept="", software=f"Tamias {__version__}", robots=""
    ) as writer:
        for holding in holdings(archive, urls, gate):
            for version in holding.versions:
                content = Content(holding.resource, version, archive.reader)
                exchange = holding.exchanges.get(version.capture)
                extent = _write_version(writer, content, exchange, folder, known)
                if extent and last and extent.file != last:
                    yield from _given(folder, last)
                last = extent.file if extent else last
    if last:
        yield from _given(folder, last)


def _given(folder: Path, name: str) -> Iterator[WarcPart]:
    path = folder / name
    yield WarcPart(path, name, path.stat().st_size)
    path.unlink()


def _answers(folder: Path) -> frozenset[int]:
    """Return what stands in WARC files, as hashes of address, time and digest."""
    indexes = [part.index for part in warc_parts(folder)]
    return frozenset(
        hash((entry.url, time, entry.digest)) for index in indexes for time, entry in entries(index)
    )


def _write_version(
    writer: WarcWriter, content: Content, exchange: CaptureRecord | None, folder: Path, known: frozenset[int]
) -> WarcExtent | None:
    resource, version = content.resource, content.version
    hops = _hops(exchange, resource.url, version)
    moment = digits(version.captured_at)
    if hash((hops[-1].url, moment, f"sha256:{version.sha256}")) in known:
        return None
    with _body(content, folder) as body:
        capture = Capture(
            url=resource.url,
            started_at=version.captured_at,
            ended_at=exchange.ended_at if exchange else version.captured_at,
            outcome=Outcome.OK,
            reason="",
            hops=hops,
            body=body,
        )
        return writer.write_answers(capture, _fields(content, exchange))


@contextmanager
def _body(content: Content, folder: Path) -> Iterator[Body]:
    version = content.version
    if version.byte_size <= IN_MEMORY:
        yield Body(size=version.byte_size, sha256=version.sha256, data=content.bytes())
        return
    path = content.spooled(folder)
    try:
        yield Body(size=version.byte_size, sha256=version.sha256, path=str(path))
    finally:
        path.unlink()


def _hops(exchange: CaptureRecord | None, url: str, version: Version) -> tuple[Hop, ...]:
    """The answers as far as they are kept: of the headers, the type and where a redirect led."""
    seen = exchange.hops if exchange else ()
    *before, last = seen or (Hop(url=url, status=200, address=""),)
    headers = (("Content-Type", version.declared_type),) if version.declared_type else ()
    redirects = []
    for hop in before:
        location = [("Location", hop.location)] if hop.location else []
        redirects.append(msgspec.structs.replace(hop, headers=(("Content-Length", "0"), *location)))
    return (*redirects, Hop(url=last.url, status=last.status, headers=headers, address=last.address))


def _fields(content: Content, exchange: CaptureRecord | None) -> Fields:
    version = content.version
    return [
        ("versionId", version.id),
        ("versionNumber", str(version.number)),
        ("foundType", version.media_type or ""),
        ("requestedUrl", content.resource.url),
        ("captureId", version.capture),
        ("fetchTimeMs", str(exchange.ended_at - exchange.started_at) if exchange else ""),
        ("http-header-user-agent", exchange.agent if exchange else ""),
    ]
