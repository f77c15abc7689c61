"""Watched tables as Parquet files, in a folder or an S3-compatible store; what has not changed stays."""

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import Path
from shutil import copyfileobj
from typing import IO, TYPE_CHECKING

import msgspec

from tamias.archive.moments import rfc3339
from tamias.archive.reader.content import Content, NoTable
from tamias.archive.reader.library import ArchiveReader
from tamias.content.formats import PARQUET, Form, bare_type, form_of
from tamias.database.disk import sync_path, write_errors
from tamias.features.exports.holdings import Holding, holdings
from tamias.features.exports.usage_gate import UsageGate
from tamias.features.tables.limits import ProfileRun, ScratchFolder
from tamias.features.tables.reader import LIMITS, load_table
from tamias.model.errors import TamiasError
from tamias.model.faults import reached
from tamias.model.resource import Version

if TYPE_CHECKING:
    from tamias.archive.blobs.objects import ObjectClient

INDEX = "tables.json"
_SAVED_EVERY = 50
_TABULAR = frozenset({Form.ROWS, Form.SHEETS, Form.JSON, Form.JSON_LINES, Form.PACKED})
_ZONED = "make_timestamptz(epoch_us({0})) AS {0}"


class ExportedTable(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of the index: a file, and the versions that it was made of."""

    file: str
    url: str
    title: str | None
    versions: list[int]
    captured_at: str
    """Of the newest of them."""
    rows: int
    digest: str
    """Of the versions: while it stays, so does the file."""


class TableExport(msgspec.Struct, kw_only=True):
    """The result of an export of tables."""

    written: int = 0
    unchanged: int = 0
    removed: int = 0
    failed: list[str] = []
    """What could not be read as a table, and why."""


def export_tables(
    archive: ArchiveReader, urls: Sequence[str], gate: UsageGate, output: str, *, history: bool
) -> TableExport:
    """Write `ID.parquet` for the newest version of each table, or `ID.history.parquet` for all of its rows.

    Without `urls`, files of tables that are there no more, or were forgotten, are removed.
    """
    place = _open_place(output)
    ending = ".history.parquet" if history else ".parquet"
    names = {name for name, _ in place.entries()}
    index = {each.file: each for each in _read_index(place) if each.file in names}
    done, wanted = TableExport(), set[str]()
    for holding in holdings(archive, urls, gate):
        versions = list(filter(_is_tabular, holding.versions))[0 if history else -1 :]
        if not versions:
            continue
        entry = _describe(holding, versions, ending)
        known = index.get(entry.file)
        wanted.add(entry.file)
        if known is not None and known.digest == entry.digest:
            done.unchanged += 1
            continue
        try:
            rows = _write(archive, holding, versions, place, entry.file)
        except NoTable as error:
            wanted.discard(entry.file)
            done.failed.append(f"{holding.resource.url}: {error}")
            continue
        index[entry.file] = msgspec.structs.replace(entry, rows=rows)
        done.written += 1
        reached("table-exported")
        if not done.written % _SAVED_EVERY:
            _write_index(place, index)
    done.removed = 0 if urls else _remove(place, index, names - wanted, ending)
    _write_index(place, index)
    return done


def _remove(
    place: "TableFolder | ObjectClient", index: dict[str, ExportedTable], names: Iterable[str], ending: str
) -> int:
    """Remove those of some files that an export of this kind wrote, and return how many they were."""
    ours = [name for name in names if re.fullmatch("[0-9a-f]{24}" + re.escape(ending), name)]
    for name in ours:
        place.delete(name)
        index.pop(name, None)
    return len(ours)


def _describe(holding: Holding, versions: Sequence[Version], ending: str) -> ExportedTable:
    """Return an entry without the number of rows."""
    content = repr([(each.number, each.sha256) for each in versions])
    return ExportedTable(
        file=holding.resource.id + ending,
        url=holding.resource.url,
        title=holding.resource.title,
        versions=[each.number for each in versions],
        captured_at=rfc3339(versions[-1].captured_at),
        rows=0,
        digest=hashlib.sha256(content.encode()).hexdigest(),
    )


def _is_tabular(version: Version) -> bool:
    return form_of(version.media_type) in _TABULAR or bare_type(version.media_type) == PARQUET


def _write(
    archive: ArchiveReader,
    holding: Holding,
    versions: Sequence[Version],
    place: "TableFolder | ObjectClient",
    name: str,
) -> int:
    """Write a table, and return how many rows it has. Raises `NoTable`."""
    import duckdb

    history = name.endswith(".history.parquet")
    contents = [Content(holding.resource, each, archive.reader).table_version for each in versions]
    with ScratchFolder(None) as folder:
        file = folder.path / "table.parquet"
        rows = load_table(contents, ProfileRun(LIMITS, folder), history=history, written=[file])
        zoned = ", ".join(map(_ZONED.format, ("valid_from", "valid_to")))
        try:
            rows.execute(
                f"COPY (SELECT *{f' REPLACE ({zoned})' if history else ''} FROM t)"  # noqa: S608
                f" TO '{file}' (FORMAT parquet, COMPRESSION zstd)"
            )
            ((count,),) = rows.execute("SELECT count(*) FROM t").fetchall()
        except duckdb.Error as error:
            raise TamiasError(f"cannot write {holding.resource.url} as Parquet: {error}") from error
        finally:
            rows.close()
        with file.open("rb") as content:
            place.put(name, content)
    return int(count)


def _open_place(output: str) -> "TableFolder | ObjectClient":
    if not output.startswith("s3://"):
        return TableFolder(Path(output))
    from tamias.archive.blobs.objects import ObjectClient, open_bucket

    return ObjectClient(open_bucket(output, os.environ))


def _read_index(place: "TableFolder | ObjectClient") -> list[ExportedTable]:
    """Return what the last export wrote; nothing where there is none, or another program's file."""
    size = place.size(INDEX)
    try:
        return msgspec.json.decode(
            place.get(INDEX, 0, size) or b"[]" if size else b"[]", type=list[ExportedTable]
        )
    except msgspec.DecodeError:
        return []


def _write_index(place: "TableFolder | ObjectClient", index: dict[str, ExportedTable]) -> None:
    content = msgspec.json.encode(sorted(index.values(), key=lambda each: each.file))
    place.put(INDEX, BytesIO(msgspec.json.format(content, indent=1)))


class TableFolder:
    """A folder, written as the objects of a store are."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with write_errors(folder, TamiasError):
            folder.mkdir(parents=True, exist_ok=True)
            for left_over in folder.glob(".*.parquet.part"):
                left_over.unlink()

    def put(self, name: str, content: IO[bytes]) -> None:
        partial = self._folder / f".{name}.part"
        with write_errors(self._folder, TamiasError):
            with partial.open("wb") as file:
                copyfileobj(content, file)
                file.flush()
                os.fsync(file.fileno())
            reached("table-copied")
            partial.replace(self._folder / name)
            sync_path(self._folder)

    def get(self, name: str, start: int, length: int) -> bytes | None:
        return (self._folder / name).read_bytes()[start : start + length]

    def size(self, name: str) -> int | None:
        file = self._folder / name
        return file.stat().st_size if file.is_file() else None

    def delete(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)

    def entries(self) -> list[tuple[str, int]]:
        return [(each.name, each.stat().st_size) for each in self._folder.iterdir() if each.is_file()]
