"""The profile of one decoded body: chooses the reader for its type and limits its work."""

import mimetypes
import shutil
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec

from tamias.content.charsets import utf16_without_mark
from tamias.content.containers.codecs import HEAD, DamageError
from tamias.content.formats import (
    BY_NAME,
    CSV,
    GEO_JSON,
    GZIP,
    HTML,
    JSON,
    NDJSON,
    ODS,
    OLE,
    PARQUET,
    PLAIN,
    SHEET,
    TSV,
    XHTML,
    XLS,
    XML,
    ZIP,
    Form,
    bare_type,
    form_of,
    is_rdf,
)
from tamias.content.sniff import found_type
from tamias.features.archive.canonical.text import looked_at, unpack
from tamias.features.tables.encoding import SMALL, as_utf8, small_text
from tamias.features.tables.files.members import ARCHIVES, archive_members, table_members
from tamias.features.tables.limits import ProfileLimit, ProfileLimits, ProfileRun, ScratchFolder, first_line
from tamias.features.tables.tables import quick_table, table_profile
from tamias.model.document import Document, LimitExceeded, Unreadable
from tamias.model.errors import ConfigError
from tamias.model.profile import Profile, TableProfile, Types

TABLES = frozenset({CSV, TSV})
WORKBOOKS = frozenset({SHEET, ODS, XLS, OLE})
TABULAR = TABLES | WORKBOOKS | {PARQUET}
"""What consists of tables."""

JSON_TYPES = frozenset({JSON, GEO_JSON, NDJSON})

_SILENT = frozenset(
    {
        "application/octet-stream",
        "binary/octet-stream",
        "application/force-download",
        "application/x-download",
    }
)
"""What claims nothing."""

_NAMES = mimetypes.MimeTypes()
_OFFICE = ("application/vnd.ms-", "application/msword")


def types(head: bytes | None, media_type: str | None, declared_type: str | None, name: str) -> Types:
    """Return the three types of a file; `media_type` was found before, and is a claim if a head is given."""
    declared, named = bare_type(declared_type) or None, _named(name)
    found = bare_type(media_type) if head is None else _found(head, media_type or declared, name)
    if found == OLE and named is not None and named.startswith(_OFFICE):
        found = named  # a letter is not read as a workbook
    claims = [claim for claim in (declared, named) if claim is not None and claim not in _SILENT]
    return Types(
        declared=declared, named=named, found=found, agree=all(_covers(claim, found) for claim in claims)
    )


def _found(head: bytes, claimed: str | None, name: str) -> str:
    wide = utf16_without_mark(head)
    return found_type(head.decode(wide, "replace").encode() if wide else head, claimed, name)


def _named(name: str) -> str | None:
    """Return what a file of that ending holds; one that says that it is packed says nothing of it."""
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    media_type = BY_NAME.get(ending)
    return _NAMES.types_map[True].get(f".{ending}") if media_type in (None, GZIP) else media_type


def _covers(claim: str, found: str) -> bool:
    """Return whether the found type is the claimed one or a special kind of it."""
    if claim == found or claim in (found.rpartition("+")[0], ""):
        return True
    general = {
        JSON: found.endswith("json"),
        XML: found.endswith("xml") and found != XHTML,
        NDJSON: found == JSON,
        PLAIN: (found.startswith("text/") and found != HTML) or found in JSON_TYPES,
        ZIP: found in WORKBOOKS,
        XLS: found == OLE,
        SHEET: found == OLE,
        CSV: found in TABLES,
    }
    return general.get(claim, False)


_PACKED_NAMES = (".gz", ".bz2", ".xz", ".zst")
_DEFAULT = ProfileLimits()


def profile(
    path: Path,
    *,
    media_type: str | None,
    declared_type: str | None,
    name: str,
    limits: ProfileLimits = _DEFAULT,
    scratch: Path | None = None,
) -> Profile:
    """The profile of one decoded body. Never raises for what stands in it: the profile's problems tell.

    `media_type` is what the body was found to be, `name` what its address ends with. Copies are made in a
    folder that goes away again, in `scratch` or where temporary files are. Raises `OSError` when the file
    cannot be read or the disk is full.
    """
    with ScratchFolder(scratch) as folder:
        return _Profiler(path, name, ProfileRun(limits, folder)).profile(media_type, declared_type)


def small_profile(
    content: bytes,
    *,
    media_type: str | None,
    name: str,
    declared_type: str | None = None,
    limits: ProfileLimits = _DEFAULT,
) -> Profile | None:
    """Return what `profile` returns for a small, unambiguous table, without writing a file; else None."""
    found = types(None, media_type, declared_type, name)
    if not 0 < len(content) <= SMALL or found.found not in TABLES:
        return None
    text = small_text(content, declared_type, ScratchFolder(None), "")
    try:
        table = quick_table(text, name, found.found, limits)
    except ImportError as error:
        raise _incomplete(error) from error
    except Exception:  # noqa: BLE001 - whatever it is, `profile` tells
        return None
    return Profile(
        size=len(content), types=found, encoding=text.encoding.name, lines=text.lines, tables=(table,)
    )


def _incomplete(error: ImportError) -> ConfigError:
    """Return what to raise where a library is missing: no body is to blame, and none would have a profile."""
    return ConfigError(f"tables cannot be profiled: {error}; install Tamias again, with all that it requires")


def document_profile(document: Document) -> Profile | None:
    """Return the profile of an opened document, None if it does not consist of tables.

    Reads its stream, from which `LimitExceeded` passes.
    """
    if document.media_type not in TABULAR:
        return None
    name = document.member or document.url.partition("#")[0].partition("?")[0]
    with tempfile.NamedTemporaryFile(prefix="profile-") as copy:
        shutil.copyfileobj(document.stream, copy)
        copy.flush()
        return profile(
            Path(copy.name),
            media_type=document.media_type,
            declared_type=document.declared_type,
            name=name.rpartition("/")[2],
        )


class _Profiler:
    """Makes one profile."""

    def __init__(self, path: Path, name: str, run: ProfileRun) -> None:
        self._path = path
        self._name = name
        self._run = run

    def profile(self, media_type: str | None, declared_type: str | None) -> Profile:
        size, problems = self._path.stat().st_size, self._run.problems
        with self._path.open("rb") as file:
            head = file.read(HEAD)
        full = bare = Profile(size=size, types=types(head, media_type, declared_type, self._name))
        try:
            full = self._full(bare, declared_type) if size else bare
        except ProfileLimit as limit:
            problems.append(str(limit))
        except OSError:
            raise
        except ImportError as error:
            raise _incomplete(error) from error
        except Exception as error:  # noqa: BLE001 - a body that breaks a reader costs its own profile only
            problems.append(f"cannot be profiled: {type(error).__name__}: {str(error)[:200]}")
        return msgspec.structs.replace(full, problems=tuple(problems[: self._run.limits.problems]))

    def _full(self, bare: Profile, declared_type: str | None) -> Profile:
        """Readers are loaded by the first body that needs them: workers profile small tables only."""
        kind, path, run = bare.types.found, self._path, self._run
        changed = msgspec.structs.replace
        if kind in WORKBOOKS:
            from tamias.features.tables.files.sheets import sheet_tables

            return changed(bare, tables=tuple(sheet_tables(path, run)))
        if kind == PARQUET:
            return changed(bare, tables=self._parquet())
        if is_rdf(kind):
            from tamias.features.tables.void import StatementReader

            return changed(bare, statements=StatementReader(path, run).read(kind))
        if kind.endswith("json"):
            from tamias.features.tables.files.json_shape import JsonReader

            structure, geography = JsonReader(path, run).read()
            return changed(bare, structure=structure, geography=geography)
        if kind.endswith("xml") and kind != XHTML:
            from tamias.features.tables.files.xml_paths import XmlReader

            return changed(bare, structure=XmlReader(path, run).read())
        if kind in ARCHIVES:
            members = archive_members(path, kind, run)
            return changed(bare, members=members, tables=tuple(self._member_tables(kind) if members else ()))
        if form_of(kind) is Form.PACKED:
            return changed(bare, tables=self._packed_table())
        return self._of_text(bare, declared_type) if kind.startswith("text/") else bare

    def _of_text(self, bare: Profile, declared_type: str | None) -> Profile:
        """A table, or other text."""
        text, kind = as_utf8(self._path, self._run, "text", declared_type), bare.types.found
        if not text.complete:
            self._run.problems.append(str(self._run.beyond_bytes()))
        if text.encoding.faults:
            self._run.problems.append("some bytes are not in the encoding of the rest")
        table = table_profile(self._run, text, self._name, kind) if kind in TABLES else None
        return msgspec.structs.replace(
            bare,
            encoding=text.encoding.name,
            lines=text.lines,
            tables=() if table is None else (table,),
        )

    def _packed_table(self) -> "tuple[TableProfile, ...]":
        """The table in a compressed file, if it is one."""
        target = self._run.folder.path / "unpacked"
        try:
            unpack(self._path, target, self._run.limits.bytes)
        except Unreadable as fault:
            self._run.problems.append(str(fault))
            return ()
        name = self._name.rpartition(".")[0] if self._name.lower().endswith(_PACKED_NAMES) else self._name
        return self._table_in(target, name)

    def _member_tables(self, kind: str) -> "Iterator[TableProfile]":
        """The tables in a zip archive, each called by its name in it."""
        if kind != ZIP:
            return
        target = self._run.folder.path / "member"
        names = table_members(self._path, target, self._run.limits.bytes)
        try:
            for name in islice(names, self._run.limits.sheets):
                yield from self._table_in(target, name)
        except (DamageError, LimitExceeded, ProfileLimit) as fault:
            self._run.problems.append(str(fault))

    def _table_in(self, path: Path, name: str) -> "tuple[TableProfile, ...]":
        named = BY_NAME.get(name.rpartition(".")[2].lower())
        kind = named or looked_at(path)
        if kind not in TABLES:
            return ()
        table = table_profile(self._run, as_utf8(path, self._run, "text", None), name, kind)
        return (table,) if table is not None and (named or table.width > 1) else ()

    def _parquet(self) -> "tuple[TableProfile, ...]":
        import duckdb

        from tamias.features.tables.files.parquet import parquet_table

        try:
            return (parquet_table(self._path, self._name, self._run),)
        except duckdb.Error as error:
            self._run.problems.append(f"no Parquet that can be read: {first_line(error)}")
            return ()
