"""WACZ 1.1.1: the WARC files of a crawl in one zip file, with an index and a list of pages, for viewers."""

import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO
from uuid import NAMESPACE_URL, uuid5

import msgspec
from selectolax.lexbor import LexborHTMLParser

from tamias.content.charsets import encoding_of
from tamias.features.exports.line_sorter import LineSorter
from tamias.features.exports.packages import Packed, ZipPackage
from tamias.features.warc.cdxj import CdxjFields, entries, line, surt
from tamias.features.warc.messages import BadMessage, MessageBody, stored_head
from tamias.features.warc.records import DamagedRecord, warc_blocks
from tamias.features.warc.warc_files import WarcPart, nothing_to_export, pieces, warc_parts

SignDigest = Callable[[str, str], dict[str, str]]
"""Returns the signature of the digest of a package, made at a time, as `signedData` (wacz-auth)."""
_VERSION = "1.1.1"
TITLE_WITHIN = 64 << 10
"""Bytes of a page in which its title is looked for."""
LONGEST_TITLE = 500
_PAGES = frozenset({"text/html", "application/xhtml+xml"})


def export_wacz(
    folder: Path, out: BinaryIO, *, title: str, more: Iterable[WarcPart] = (), sign: SignDigest | None = None
) -> int:
    """Writes the WARC files of a folder as one WACZ; returns how many they were. `out` may be a pipe.

    One of `more` need not be there any longer when the next is asked for, but its index must. Raises
    `TamiasError` when there are none. Memory does not grow with them.
    """
    parts: list[WarcPart] = []
    resources: list[Packed] = []
    waiting = chain(warc_parts(folder), more)
    first = next(waiting, None)
    if first is None:
        raise nothing_to_export(folder)
    with ExitStack() as stack:
        zipped = stack.enter_context(zipfile.ZipFile(out, "w"))
        scratch = stack.enter_context(TemporaryDirectory(prefix="tamias-wacz-"))
        package, ordered = ZipPackage(zipped), LineSorter(Path(scratch))
        pages = LineSorter(Path(stack.enter_context(TemporaryDirectory(prefix="tamias-wacz-"))))
        for part in chain([first], waiting):
            # Stored as it is, so that a viewer can reach into it.
            resources.append(package.add(f"archive/{part.name}", pieces(part), stored=True))
            pages.add(_pages(part))
            parts.append(part)
        ordered.add(_lines(parts))
        resources.append(package.add("indexes/index.cdx", ordered.pieces()))
        resources.append(package.add("pages/pages.jsonl", _page_lines(pages.lines(), title)))
        _describe(package, resources, title, sign)
    return len(parts)


def _lines(parts: list[WarcPart]) -> Iterator[bytes]:
    for part in parts:
        for time, entry in entries(part.index):
            if entry.end <= part.length:
                yield line(entry, time)


def _pages(part: WarcPart) -> Iterator[bytes]:
    """Yield the pages that a reader may begin with: whatever is HTML and was there; each behind its key."""
    with part.path.open("rb") as file:
        for time, entry in entries(part.index):
            if entry.end <= part.length and entry.mime in _PAGES and entry.status == "200":
                key = f"{surt(entry.url)} {time} ".encode()
                yield key + _page(time, entry, _title(file, int(entry.offset))) + b"\n"


def _page_lines(lines: Iterable[bytes], title: str) -> Iterator[bytes]:
    head = {"format": "json-pages-1.0", "id": "pages", "title": title}
    yield msgspec.json.encode(head) + b"\n"
    for text in lines:
        yield text.split(b" ", 2)[2]


def _page(time: str, entry: CdxjFields, title: str) -> bytes:
    moment = datetime.strptime(time, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    return msgspec.json.encode(
        {
            "id": str(uuid5(NAMESPACE_URL, f"{time} {entry.url}")),
            "url": entry.url,
            "ts": moment.isoformat().replace("+00:00", "Z"),
            "title": title or entry.url,
        }
    )


def _title(file: BinaryIO, offset: int) -> str:
    """Return the title of a page, by its beginning."""
    start = b""
    with suppress(BadMessage, DamagedRecord, UnicodeError, LookupError):
        for block in islice(warc_blocks(file, lambda _offset, _problem: None, offset), 1):
            head = stored_head(block)
            for piece in MessageBody(block, head).pieces():
                start += piece
                if len(start) >= TITLE_WITHIN:
                    break
            start = start[:TITLE_WITHIN]
            text = start.decode(encoding_of(start, head.header("content-type")), "replace")
            found = LexborHTMLParser(text).css_first("title")
            return " ".join(found.text().split())[:LONGEST_TITLE] if found else ""
    return ""


def _describe(package: ZipPackage, resources: list[Packed], title: str, sign: SignDigest | None) -> None:
    created = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    metadata = {
        "profile": "data-package",
        "wacz_version": _VERSION,
        "title": title,
        "software": "Tamias",
        "created": created,
        "resources": [
            {"name": Path(each.path).name, "path": each.path, "hash": _hash(each), "bytes": each.size}
            for each in resources
        ],
    }
    description = msgspec.json.format(msgspec.json.encode(metadata), indent=2)
    listed = package.add("datapackage.json", [description])
    digest: dict[str, Any] = {"path": listed.path, "hash": _hash(listed)}
    if sign is not None:
        digest["signedData"] = sign(digest["hash"], created)
    package.add("datapackage-digest.json", [msgspec.json.encode(digest)])


def _hash(packed: Packed) -> str:
    return f"sha256:{packed.sha256}"
