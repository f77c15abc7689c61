"""Schemas as they are published next to tables: which tables they are for, and what they say of each."""

from collections.abc import Mapping
from posixpath import basename
from typing import Any
from urllib.parse import urljoin

import msgspec

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
