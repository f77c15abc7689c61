"""WACZ 1.1.1: the WARC files of a crawl in one zip file, with an index and a list of pages, for viewers."""

import zipfile
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO
from uuid import NAMESPACE_URL, uuid5

import msgspec

from tamias.features.exports.line_sorter import LineSorter
from tamias.features.exports.packages import Packed, ZipPackage
from tamias.features.warc.cdxj import CdxjFields, entries, line, parsed
from tamias.features.warc.warc_files import WarcPart, nothing_to_export, pieces, warc_parts

SignDigest = Callable[[str, str], dict[str, str]]
"""Returns the signature of the digest of a package, made at a time, as `signedData` (wacz-auth)."""
_VERSION = "1.1.1"
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
    with zipfile.ZipFile(out, "w") as zipped, TemporaryDirectory(prefix="tamias-wacz-") as scratch:
        package, ordered = ZipPackage(zipped), LineSorter(Path(scratch))
        for part in chain([first], waiting):
            # Stored as it is, so that a viewer can reach into it.
            resources.append(package.add(f"archive/{part.name}", pieces(part), stored=True))
            parts.append(part)
        ordered.add(_lines(parts))
        resources.append(package.add("indexes/index.cdx", ordered.pieces()))
        resources.append(package.add("pages/pages.jsonl", _page_lines(ordered.lines(), title)))
        _describe(package, resources, title, sign)
    return len(parts)


def _lines(parts: list[WarcPart]) -> Iterator[bytes]:
    for part in parts:
        for time, entry in entries(part.index):
            if entry.end <= part.length:
                yield line(entry, time)


def _page_lines(lines: Iterable[bytes], title: str) -> Iterator[bytes]:
    """The pages that a reader may begin with: whatever is HTML and was there."""
    head = {"format": "json-pages-1.0", "id": "pages", "title": title}
    yield msgspec.json.encode(head) + b"\n"
    for text in lines:
        entry = parsed(text)
        if entry is not None and entry[1].mime in _PAGES and entry[1].status == "200":
            yield _page(*entry) + b"\n"


def _page(time: str, entry: CdxjFields) -> bytes:
    moment = datetime.strptime(time, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    return msgspec.json.encode(
        {
            "id": str(uuid5(NAMESPACE_URL, f"{time} {entry.url}")),
            "url": entry.url,
            "ts": moment.isoformat().replace("+00:00", "Z"),
            "title": entry.url,
        }
    )


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
