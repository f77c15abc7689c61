"""The records of a `data.json` (DCAT-US 1.1, Project Open Data) as values, and a broken file's good ones."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from tamias.harvesters.descriptions import is_web
from tamias.harvesters.location import box_polygon
from tamias.harvesters.mapping import RecordMapping, plain
from tamias.harvesters.records import TITLES, count, one_text, properties, table, tables, text, texts
from tamias.harvesters.terms import below
from tamias.model.dataset import Agent, Dataset, Distribution, Period

MOST_FAULTS = 200
_LONGEST_RECORD = 1 << 20
"""Characters of a record that is looked for in a broken file."""

_BETWEEN = re.compile(r"\}\s*,?\s*(?=\{)|\[\s*(?=\{)")
_RECORD_KEYS = frozenset({"identifier", "accessLevel", "publisher", "distribution", "contactPoint"})


_PROPERTIES: Final = {
    "describedBy": "foaf:page",
    "references": "dct:relation",
    "systemOfRecords": "dct:relation",
    "isPartOf": "dct:isPartOf",
}
DROPPED: Final = {
    "describedByType": "the media type of a page that is kept",
    "distribution.describedByType": "the media type of a page that is kept",
}


class _Catalogue(msgspec.Struct):
    dataset: list[msgspec.Raw]


def records_in(raw: bytes) -> Iterator[bytes | str]:
    """Yield the records of a file as they stand in it, and a message for what is none.

    A file with a fault is searched for what still is a record, before the fault and after it.
    """
    try:
        pieces = _pieces(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        yield f"data.json: {error}; looking for the records that are whole"
        yield from _whole_records(raw.decode("utf-8", "replace"))
        return
    for number, piece in enumerate(pieces, 1):
        body = bytes(piece).strip()
        yield body if body.startswith(b"{") else f"record {number} of data.json is not an object"


def dataset_of(record: dict[str, Any], catalogue: str) -> Dataset:
    """Read a record as a dataset. Raises `ValueError` for one without anything like an identifier."""
    identifier = text(record.get("identifier"))
    own = (
        identifier or text(record.get("@id")) or text(record.get("landingPage")) or text(record.get("title"))
    )
    if own is None:
        raise ValueError("it has neither identifier nor title")
    names = (name for name in (text(record.get("@id")), identifier) if name)
    return Dataset(
        iri=next(filter(is_web, names), None) or below(catalogue, own, "dataset").value,
        record=own,
        title=one_text(record.get("title")) or own,
        description=one_text(record.get("description")),
        identifiers=texts(identifier),
        keywords=texts(record.get("keyword")),
        groups=texts(record.get("theme")),
        landing_page=text(record.get("landingPage")),
        licence=text(record.get("license")),
        rights=text(record.get("rights")),
        access_rights=text(record.get("accessLevel")),
        publisher=_publisher(record.get("publisher")),
        contact=_contact(record.get("contactPoint")),
        issued=text(record.get("issued")),
        modified=_date(record.get("modified")),
        frequency=text(record.get("accrualPeriodicity")),
        language=texts(record.get("language")),
        spatial=tuple(_places(record.get("spatial"))),
        temporal=tuple(_periods(record.get("temporal"))),
        conforms_to=texts(record.get("conformsTo")),
        distributions=tuple(_distributions(record)),
        more=tuple(properties(record, {**TITLES, "keyword": "dcat:keyword"}, _PROPERTIES)),
    )


def _pieces(raw: bytes) -> list[msgspec.Raw]:
    """The records as they stand in the file: under `dataset`, or, as before 1.1, the file's own list."""
    is_list = raw[:64].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    return (
        msgspec.json.decode(raw, type=list[msgspec.Raw])
        if is_list
        else msgspec.json.decode(raw, type=_Catalogue).dataset
    )


def _whole_records(file: str) -> Iterator[bytes | str]:
    decoder, end, faults = json.JSONDecoder(), 0, 0
    for start in _BETWEEN.finditer(file):
        if start.end() < end:
            continue
        try:
            record, size = decoder.raw_decode(file[start.end() : start.end() + _LONGEST_RECORD])
        except (ValueError, RecursionError) as error:
            faults += 1
            yield f"at character {start.end() + 1} of data.json: {error}"
            if faults == MOST_FAULTS:
                yield f"data.json has more than {MOST_FAULTS} faults; the rest of it is not read"
                return
            continue
        if "title" in record and _RECORD_KEYS & record.keys():
            end = start.end() + size
            yield file[start.end() : end].encode()


def _publisher(value: Any) -> Agent | None:
    name = text(value) or text(table(value).get("name"))
    return Agent(name=name, homepage=text(table(value).get("url"))) if name else None


def _contact(value: Any) -> Agent | None:
    """A vCard; very old files have only a name."""
    card = table(value)
    email = (text(card.get("hasEmail")) or text(card.get("email")) or "").removeprefix("mailto:") or None
    name = text(value) or text(card.get("fn")) or text(card.get("name")) or email
    return Agent(name=name, email=email, homepage=text(card.get("hasURL"))) if name else None


def _date(value: Any) -> str | None:
    """A date; a repetition such as `R/P1D`, which 1.1 allows here, is none."""
    found = text(value)
    return None if found and found.startswith("R/") else found


def _places(value: Any) -> Iterator[str]:
    """A name, an IRI, a box `west,south,east,north` (as WKT), or GeoJSON (as text)."""
    for place in value if isinstance(value, list) else [value]:
        if isinstance(place, dict):
            yield msgspec.json.encode(plain(place)).decode()
        elif found := text(place):
            yield box_polygon(found.split(",")) or found


def _periods(value: Any) -> Iterator[Period]:
    for period in texts(value):
        start, _, end = period.partition("/")
        yield Period(start.strip() or None, end.strip() or None)


def _distributions(record: dict[str, Any]) -> Iterator[Distribution]:
    for each in tables(record.get("distribution")):
        download, access = text(each.get("downloadURL")), text(each.get("accessURL"))
        url = download or access
        if url is None:
            continue
        yield Distribution(
            url=url,
            access_only=download is None,
            title=one_text(each.get("title")),
            description=one_text(each.get("description")),
            access_url=access,
            media_type=text(each.get("mediaType")),
            format=text(each.get("format")),
            licence=text(each.get("license")),
            byte_size=count(each.get("byteSize")),
            conforms_to=texts(each.get("conformsTo")),
            service=url if _is_sparql(url, each) else None,
            service_kind="sparql" if _is_sparql(url, each) else None,
            more=tuple(properties(each, TITLES, {"describedBy": "foaf:page"})),
        )


def _is_sparql(url: str, distribution: dict[str, Any]) -> bool:
    words = f"{text(distribution.get('format'))} {text(distribution.get('conformsTo'))}".lower()
    return "sparql" in words or url.rstrip("/").lower().endswith("/sparql")


MAPPING: Final = RecordMapping("data-json", dataset_of, DROPPED)
