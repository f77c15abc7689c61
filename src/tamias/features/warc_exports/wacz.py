"""WACZ 1.1.1: the WARC files of a crawl in one zip file, with an index and a list of pages, for viewers."""

import hashlib
import heapq
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, BinaryIO
from uuid import NAMESPACE_URL, uuid5

import msgspec

from tamias.features.warc.cdxj import CdxjFields, entries, line, parsed
from tamias.features.warc.warc_files import WarcPart, nothing_to_export, pieces, warc_parts

LINES_AT_ONCE = 100_000
"""Lines of the index that are sorted in memory."""

_VERSION = "1.1.1"
_PAGES = frozenset({"text/html", "application/xhtml+xml"})


class WaczResource(msgspec.Struct, frozen=True):
    """A file in the package."""

    name: str
    path: str
    hash: str
    bytes: int


def export_wacz(folder: Path, out: BinaryIO, *, title: str, more: Iterable[WarcPart] = ()) -> int:
    """Writes the WARC files of a folder as one WACZ; returns how many they were. `out` may be a pipe.

    One of `more` need not be there any longer when the next is asked for, but its index must. Raises
    `TamiasError` when there are none. Memory does not grow with them.
    """
    parts: list[WarcPart] = []
    resources: list[WaczResource] = []
    waiting = chain(warc_parts(folder), more)
    first = next(waiting, None)
    if first is None:
        raise nothing_to_export(folder)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as package:
        for part in chain([first], waiting):
            resources.append(_added(package, f"archive/{part.name}", pieces(part)))
            parts.append(part)
        with _SortedLines(_lines(parts)) as ordered:
            resources.append(_added(package, "indexes/index.cdx", ordered.lines(), zipfile.ZIP_DEFLATED))
            pages = _page_lines(ordered.lines(), title)
            resources.append(_added(package, "pages/pages.jsonl", pages, zipfile.ZIP_DEFLATED))
        _describe(package, resources, title)
    return len(parts)


def _added(
    package: zipfile.ZipFile, path: str, content: Iterable[bytes], method: int = zipfile.ZIP_STORED
) -> WaczResource:
    """Archives are stored as they are, so that a viewer can reach into them."""
    digest = hashlib.sha256()
    size = 0
    with package.open(_entry(path, method), "w", force_zip64=True) as file:
        for piece in content:
            digest.update(piece)
            size += len(piece)
            file.write(piece)
    return WaczResource(path.rpartition("/")[2], path, f"sha256:{digest.hexdigest()}", size)


def _entry(path: str, method: int) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(path, datetime.now(UTC).timetuple()[:6])
    entry.compress_type = method
    entry.external_attr = 0o644 << 16
    return entry


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


def _describe(package: zipfile.ZipFile, resources: list[WaczResource], title: str) -> None:
    metadata = {
        "profile": "data-package",
        "wacz_version": _VERSION,
        "title": title,
        "software": "Tamias",
        "created": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "resources": resources,
    }
    description = msgspec.json.format(msgspec.json.encode(metadata), indent=2)
    listed = _added(package, "datapackage.json", [description], zipfile.ZIP_DEFLATED)
    digest = {"path": listed.path, "hash": listed.hash}
    _added(package, "datapackage-digest.json", [msgspec.json.encode(digest)], zipfile.ZIP_DEFLATED)


class _SortedLines:
    """Lines in the order of their bytes: sorted in runs, merged when read."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._stack = ExitStack()
        self._runs: list[IO[bytes]] = []
        batch: list[bytes] = []
        for text in lines:
            batch.append(text)
            if len(batch) >= LINES_AT_ONCE:
                self._keep(batch)
                batch = []
        self._keep(batch)

    def lines(self) -> Iterator[bytes]:
        """Yield all lines; may be asked for again when they have been read."""
        for run in self._runs:
            run.seek(0)
        return heapq.merge(*self._runs)

    def __enter__(self) -> "_SortedLines":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _keep(self, batch: list[bytes]) -> None:
        run = self._stack.enter_context(TemporaryFile())  # noqa: SIM115 - the stack closes it
        run.writelines(sorted(batch))
        self._runs.append(run)
