"""Regular work: versions of tables are checked against their schemas, each version once.

Schemas are published next to tables, and say which tables they are for.
"""

import logging
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from importlib.util import find_spec
from pathlib import Path
from posixpath import basename
from typing import Any
from urllib.parse import urljoin

import msgspec
from psycopg.types.json import Jsonb

from tamias.archive.blobs import BlobDamaged, BlobMissing, BlobReader
from tamias.content.charsets import found_encoding
from tamias.content.formats import CSV, TSV
from tamias.crawl.plan.admit import Admission, open_frontier
from tamias.crawl.revisit.watches import Wanted, Watcher
from tamias.database.connect import Database, Session
from tamias.database.sql import statements
from tamias.features.validation import table_check
from tamias.features.validation.settings import ValidationSettings
from tamias.features.validation.table_check import DESCRIPTION, NOT_CHECKED, TABLE, CheckOrder, SchemaFault
from tamias.model.errors import DatabaseError
from tamias.model.process import run_within
from tamias.model.resource import resource_id
from tamias.model.url import url_key
from tamias.settings import Settings

MOST_BYTES = 1 << 20
MOST_TABLES = 1000
CSVW, FRICTIONLESS = "csvw", "frictionless"
_INHERITED = ("@context", "dialect", "null", "lang", "separator", "tableSchema")


class TableSchema(msgspec.Struct, frozen=True):
    """Description of a table in a file, in the terms of CSVW, or of a Data Resource."""

    url: str
    kind: str
    description: dict[str, Any]


def schemas_in(content: bytes, url: str) -> list[TableSchema]:
    """Return what a file says of tables next to it or below; nothing where it is no schema.

    >>> content = b'{"resources": [{"path": "a.csv", "schema": {"fields": []}}, {"path": "/b.csv"}]}'
    >>> found = schemas_in(content, "http://a.example/d/datapackage.json")
    >>> [(each.url, each.kind) for each in found]
    [('http://a.example/d/a.csv', 'frictionless')]
    """
    file = read_object(content) or {}
    found = [*_in_package(file), *_in_csvw(file), *_in_table_schema(file, url)][:MOST_TABLES]
    folder = urljoin(url, ".")
    named = [TableSchema(urljoin(url, path), kind, about) for path, kind, about in found]
    return [each for each in named if each.url.startswith(folder)]


def read_object(content: bytes) -> dict[str, Any] | None:
    """Return what JSON says; None where it is no object."""
    try:
        found = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def places(url: str) -> list[str]:
    """Return where the schema of a table is looked for.

    >>> places("http://a.example/d/t.csv")[1:]
    ['http://a.example/d/csv-metadata.json', 'http://a.example/d/datapackage.json']
    """
    return [f"{url}-metadata.json", urljoin(url, "csv-metadata.json"), urljoin(url, "datapackage.json")]


_Named = tuple[str, str, dict[str, Any]]


def _in_package(file: Mapping[str, Any]) -> list[_Named]:
    return [
        (each["path"], FRICTIONLESS, each)
        for each in _dicts(file.get("resources"))
        if isinstance(each.get("path"), str) and each.get("schema")
    ]


def _in_csvw(file: Mapping[str, Any]) -> list[_Named]:
    if "http://www.w3.org/ns/csvw" not in str(file.get("@context"))[:200]:
        return []
    inherited = {name: file[name] for name in _INHERITED if name in file}
    tables = [{**inherited, **each} for each in _dicts(file.get("tables", [file]))]
    return [
        (each["url"], CSVW, each)
        for each in tables
        if isinstance(each.get("url"), str) and each.get("tableSchema")
    ]


def _in_table_schema(file: Mapping[str, Any], url: str) -> list[_Named]:
    name, ending = basename(url), ".schema.json"
    if not isinstance(file.get("fields"), list) or not name.endswith(ending):
        return []
    table = name.removesuffix(ending)
    names = [table] if "." in table else [f"{table}.csv", f"{table}.tsv"]
    return [(each, FRICTIONLESS, {"schema": dict(file)}) for each in names]


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


MOST_TABLE = 64 << 20
ROUND_SECONDS = 300.0
WAITED = 10
"""Times the processor seconds of a check, on a busy machine."""
_AT_ONCE = 50
_TYPES = [CSV, TSV]
_SQL = statements("tamias.features.validation", "validation.sql")
_log = logging.getLogger(__name__)


class UncheckedVersion(msgspec.Struct, frozen=True):
    """A version of a table, with the version of the schema of its time."""

    resource: str
    url: str
    number: int
    sha256: str
    size: int
    media_type: str | None
    declared_type: str | None
    file: str
    file_number: int
    file_url: str
    file_sha256: str


def check_versions(session: Session, blobs: BlobReader, settings: Settings) -> None:
    """Read new schemas, then check versions that were not checked, for some minutes at most."""
    if settings.of_feature("validation", ValidationSettings).look:
        _look(session, settings)
    checker = _Checker(session, blobs, settings.filters.session_names)
    while checker.read_files():
        pass
    ends = time.monotonic() + ROUND_SECONDS
    while rows := session.fetch_all(_SQL["unchecked"], {"limit": _AT_ONCE}):
        for row in rows:
            if time.monotonic() > ends or not checker.check(UncheckedVersion(*row)):
                return


def erase(database: Database, _data: Path, _settings: Settings) -> list[str]:
    """Remove checks of what was forgotten; faults quote cells, and names from schemas."""
    with closing(database.session()) as session:
        session.execute(_SQL["erase_files"])
        session.execute(_SQL["erase_checks"])
        with suppress(DatabaseError):  # a lock that others hold; what is left is overwritten by and by
            session.execute(_SQL["clean_checks"])
    return []


def _look(session: Session, settings: Settings) -> None:
    """Watch what may be schemas of tables that have none; stop with those that are not there."""
    watcher = Watcher(session, open_frontier(session, settings), Admission(settings, ()))
    names = settings.filters.session_names
    for (url,) in session.fetch_all(_SQL["unlooked_tables"], {"types": _TYPES, "limit": _AT_ONCE}):
        for place in places(url):
            watcher.add([Wanted(url=place)])
            row = {"file": _id(place, names), "number": 0, "captured_at": 0, "tables": [_id(url, names)]}
            session.execute(_SQL["put_file"], row)
    watcher.stop([url for (url,) in session.fetch_all(_SQL["absent_files"])])


class _Checker:
    def __init__(self, session: Session, blobs: BlobReader, session_names: Iterable[str]) -> None:
        self._session = session
        self._blobs = blobs
        self._names = frozenset(session_names)

    def read_files(self) -> int:
        """Read some new versions of files that may be schemas; return how many."""
        rows = self._session.fetch_all(_SQL["unread_files"], {"limit": _AT_ONCE})
        for file, url, number, captured_at, sha256, size in rows:
            found = schemas_in(self._body(sha256), url) if size <= MOST_BYTES else []
            tables = [_id(each.url, self._names) for each in found]
            row = {"file": file, "number": number, "captured_at": captured_at, "tables": tables}
            self._session.execute(_SQL["put_file"], row)
        return len(rows)

    def check(self, version: UncheckedVersion) -> bool:
        """Check a version and store what was found; false where the library that does it is not installed."""
        schema = self._schema(version)
        if schema is not None and find_spec(schema.kind) is None:
            _log.warning("%s is not checked: pip install 'tamias[validation]'", version.url)
            return False
        faults = self._faults(version, schema)
        is_unknown = any(each.text.startswith(NOT_CHECKED) for each in faults)
        row = {name: getattr(version, name) for name in ("resource", "number", "file", "file_number")}
        found = {"is_valid": None if is_unknown else not faults, "faults": Jsonb(msgspec.to_builtins(faults))}
        self._session.execute(_SQL["put_check"], {**row, **found, "now": self._session.now()})
        return True

    def _faults(self, version: UncheckedVersion, schema: TableSchema | None) -> list[SchemaFault]:
        if version.media_type not in _TYPES:
            return [
                SchemaFault(f"a table was promised, and this is {version.media_type or 'of an unknown type'}")
            ]
        if version.size > MOST_TABLE:
            return [SchemaFault(f"{NOT_CHECKED}larger than {MOST_TABLE >> 20} MiB")]
        description = self._description(schema, version.file_url) if schema else None
        if schema is None or description is None:
            return [SchemaFault(f"{NOT_CHECKED}the schema is not in the archive, or cannot be read")]
        with tempfile.TemporaryDirectory(prefix="tamias-validation-") as folder:
            table = Path(folder, TABLE)
            try:
                with table.open("wb") as file:
                    file.writelines(self._blobs.pieces(version.sha256))
            except (BlobDamaged, BlobMissing) as error:
                return [SchemaFault(f"{NOT_CHECKED}{error}")]
            with table.open("rb") as file:
                encoding = found_encoding(file, version.declared_type).name.replace("utf-8", "utf-8-sig")
            Path(folder, DESCRIPTION).write_bytes(msgspec.json.encode(description))
            return run_check(
                Path(folder),
                CheckOrder(kind=schema.kind, encoding=encoding, seconds=5 + (version.size >> 19)),
            )

    def _schema(self, version: UncheckedVersion) -> TableSchema | None:
        found = schemas_in(self._body(version.file_sha256), version.file_url)
        return next((each for each in found if _id(each.url, self._names) == version.resource), None)

    def _description(self, schema: TableSchema, file_url: str) -> dict[str, Any] | None:
        """Return a description with its schema, which may be another file of the archive; None without it."""
        part = "tableSchema" if schema.kind == CSVW else "schema"
        found = schema.description[part]
        if not isinstance(found, dict):
            address = urljoin(file_url, str(found))
            row = self._session.fetch_one(_SQL["newest_body"], {"resource": _id(address, self._names)})
            is_near = address.startswith(urljoin(file_url, "."))
            found = read_object(self._body(row[0])) if is_near and row and row[1] <= MOST_BYTES else None
        return None if found is None else {**schema.description, part: found}

    def _body(self, sha256: str) -> bytes:
        try:
            return self._blobs.read(sha256)
        except (BlobDamaged, BlobMissing):
            return b""


def run_check(folder: Path, order: CheckOrder) -> list[SchemaFault]:
    """Check the table in a folder by its description there, in a process of its own."""
    words = table_check.__name__, msgspec.json.encode(order).decode()
    found = run_within(WAITED * order.seconds, *words, TMPDIR=str(folder))
    if found is not None:
        return msgspec.json.decode(found, type=list[SchemaFault])
    limit = f"{order.seconds} s and {order.memory >> 30} GiB of memory"
    return [SchemaFault(f"{NOT_CHECKED}it takes more than {limit}, or ends the library that checks it")]


def _id(url: str, names: Iterable[str]) -> str:
    return resource_id(url_key(url, frozenset(names)))
