"""A dataset as JSON-LD for its page: schema.org's Dataset, which Croissant 1.1 builds on."""

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from tamias.archive.moments import rfc3339
from tamias.features.dcat.datasets.authority import licence_iri
from tamias.features.dcat.terms import CatalogueBases
from tamias.model.profile import ColumnProfile, Profile, TableProfile
from tamias.model.resource import Resource, Version
from tamias.model.url import host

CONFORMS_TO: Final = "http://mlcommons.org/croissant/1.1"
MOST_COLUMNS: Final = 500
_UNFIT_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_TABULAR: Final = frozenset({"text/csv", "text/tab-separated-values"})
_TERMS: Final = (
    "arrayShape", "citeAs", "column", "containedIn", "equivalentProperty", "extract", "field", "fileObject",
    "fileProperty", "fileSet", "format", "includes", "isArray", "isLiveDataset", "jsonPath", "key", "md5",
    "parentField", "path", "recordSet", "references", "regex", "repeated", "replace", "samplingRate",
    "separator", "source", "subField", "transform",
)  # fmt: skip
_CONTEXT: Final[dict[str, Any]] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "description": {"@container": "@language"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
    **{term: f"cr:{term}" for term in _TERMS},
}
"""The context that Croissant asks for."""
_DATATYPES: Final = {
    "boolean": "sc:Boolean",
    "date": "sc:Date",
    "dateTime": "sc:DateTime",
    "decimal": "sc:Float",
    "double": "sc:Float",
    "float": "sc:Float",
    "gYear": "sc:Integer",
    "integer": "sc:Integer",
    "time": "sc:Time",
}


def dataset_jsonld(
    resource: Resource, versions: Sequence[Version], profile: Profile | None, bases: CatalogueBases
) -> dict[str, Any]:
    """Return the JSON-LD of a dataset for search engines and loaders of training data.

    Versions are given oldest first; `profile` is of the newest.
    """
    title = resource.title or resource.url
    document: dict[str, Any] = {
        "@context": _CONTEXT,
        "@id": bases.dataset(resource.id).value,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": title[:500],
        "description": f"{resource.url}: every version that was seen of it, kept as it came.",
        "url": bases.dataset(resource.id).value,
        "isBasedOn": resource.url,
        "citeAs": f"{title[:500]}. {resource.url}",
        "creator": {"@type": "sc:Organization", "name": host(resource.url) or resource.url},
        "publisher": {"@type": "sc:Organization", "name": bases.publisher},
        "includedInDataCatalog": {
            "@type": "sc:DataCatalog",
            "@id": bases.catalogue().value,
            "name": bases.title,
        },
    }
    if resource.licences:
        document["license"] = [licence_iri(each) or each for each in resource.licences]
    if not versions:
        return document
    first, last = (rfc3339(versions[place].captured_at) for place in (0, -1))
    dates = {"datePublished": first, "dateModified": last}
    version = {"version": f"{versions[-1].number}.0.0", **dates}
    return document | version | _filed(versions[-1], profile, bases)


def embedded(document: dict[str, Any]) -> str:
    """The same as text that may stand inside a script element."""
    return msgspec.json.encode(document).decode().replace("<", "\\u003c").replace("\u2028", "\\u2028")


def _filed(version: Version, profile: Profile | None, bases: CatalogueBases) -> dict[str, Any]:
    """The newest version as a file, and the records in it where they are a plain table with a header."""
    file = {
        "@type": "cr:FileObject",
        "@id": "file",
        "name": f"version {version.number}",
        "contentUrl": bases.file(version).value,
        "contentSize": f"{version.byte_size} B",
        "encodingFormat": version.media_type or "application/octet-stream",
        "sha256": version.sha256,
    }
    tables = profile.tables if profile is not None and version.media_type in _TABULAR else ()
    plain = [table for table in tables if _is_plain(table, version.media_type)]
    records = [_records(table, number) for number, table in enumerate(plain, 1)]
    return {"distribution": [file]} | ({"recordSet": records} if records else {})


def _is_plain(table: TableProfile, media_type: str | None) -> bool:
    """Return whether a table has the dialect that Croissant assumes, as it has no words for others."""
    delimiter = "," if media_type == "text/csv" else "\t"
    return table.header and not table.skipped and table.delimiter == delimiter and table.encoding == "utf-8"


def _records(table: TableProfile, number: int) -> dict[str, Any]:
    name = f"records-{number}"
    columns = {column.name: column for column in table.columns[:MOST_COLUMNS] if column.name}
    fields = [_field(name, place, column) for place, column in enumerate(columns.values(), 1)]
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "field": fields}


def _field(records: str, place: int, column: ColumnProfile) -> dict[str, Any]:
    name = _UNFIT_NAME.sub("_", column.name)[:100]
    return {
        "@type": "cr:Field",
        "@id": f"{records}/{place}-{name}",
        "name": f"{place}-{name}",
        "description": column.name,
        "dataType": _DATATYPES.get(column.read_as, "sc:Text"),
        "source": {"fileObject": {"@id": "file"}, "extract": {"column": column.name}},
    }
