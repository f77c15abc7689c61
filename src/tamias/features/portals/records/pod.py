"""The records of a `data.json` (DCAT-US 1.1, Project Open Data) as values, and a broken file's good ones."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from tamias.features.portals.fields import Fields, terms
from tamias.harvesters.location import box_polygon
from tamias.harvesters.mapping import RecordMapping, plain
from tamias.harvesters.records import TITLES, text, texts
from tamias.harvesters.terms import below
from tamias.model.dataset import Agent, Dataset, Distribution, Period

MOST_FAULTS = 200
_LONGEST_RECORD = 1 << 20
"""Characters of a record that is looked for in a broken file."""

_BETWEEN = re.compile(r"\}\s*,?\s*(?=\{)|\[\s*(?=\{)")
_RECORD_KEYS = frozenset({"identifier", "accessLevel", "publisher", "distribution", "contactPoint"})


Context = Mapping[str, str]
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


def _date(record: dict[str, Any], _: Context) -> str | None:
    """A date; a repetition such as `R/P1D`, which 1.1 allows here, is none."""
    found = text(record.get("modified"))
    return None if found and found.startswith("R/") else found


def _places(record: dict[str, Any], _: Context) -> Iterator[str]:
    """A name, an IRI, a box `west,south,east,north` (as WKT), or GeoJSON (as text)."""
    value = record.get("spatial")
    for place in value if isinstance(value, list) else [value]:
        if isinstance(place, dict):
            yield msgspec.json.encode(plain(place)).decode()
        elif found := text(place):
            yield box_polygon(found.split(",")) or found


def _periods(record: dict[str, Any], _: Context) -> Iterator[Period]:
    for period in texts(record.get("temporal")):
        start, _slash, end = period.partition("/")
        yield Period(start.strip() or None, end.strip() or None)


def _service(said: dict[str, Any], _: Context) -> dict[str, str]:
    """Return the fields of a SPARQL service."""
    url = text(said.get("downloadURL")) or text(said.get("accessURL")) or ""
    words = f"{text(said.get('format'))} {text(said.get('conformsTo'))}".lower()
    is_sparql = "sparql" in words or url.rstrip("/").lower().endswith("/sparql")
    return {"service": url, "service_kind": "sparql"} if is_sparql else {}


_MAIL: Final = "hasEmail>mail email>mail"
_DATASET: Final = Fields(
    Dataset,
    iri="@id>web identifier>web {own}", record="identifier @id landingPage title",
    title="title identifier @id landingPage", description="description", identifiers="identifier",
    keywords="keyword", groups="theme", landing_page="landingPage", licence="license", rights="rights",
    access_rights="accessLevel",
    publisher=(
        Fields(Agent, name="publisher>text"), Fields(Agent, "publisher", name="name", homepage="url>text")
    ),
    contact=(
        Fields(Agent, name="contactPoint>text"),
        Fields(Agent, "contactPoint", name=f"fn name {_MAIL}", email=_MAIL, homepage="hasURL>text"),
    ),
    issued="issued", modified=_date, frequency="accrualPeriodicity", language="language", spatial=_places,
    temporal=_periods, conforms_to="conformsTo",
    distributions=Fields(
        Distribution, "distribution", also=_service,
        url="downloadURL accessURL", access_only=lambda said, _: text(said.get("downloadURL")) is None,
        title="title", description="description", access_url="accessURL", media_type="mediaType",
        format="format", licence="license", byte_size="byteSize", conforms_to="conformsTo",
        more=terms(TITLES, {"describedBy": "foaf:page"}),
    ),
    more=terms({**TITLES, "keyword": "dcat:keyword"}, _PROPERTIES),
)  # fmt: skip


def dataset_of(record: dict[str, Any], catalogue: str) -> Dataset:
    """Read a record as a dataset. Raise `ValueError` for one without anything like an identifier."""
    names = ("identifier", "@id", "landingPage", "title")
    own = next(filter(None, (text(record.get(name)) for name in names)), None)
    if own is None:
        raise ValueError("it has neither identifier nor title")
    return _DATASET.of(record, catalogue, own=below(catalogue, own, "dataset").value)


MAPPING: Final = RecordMapping("data-json", dataset_of, DROPPED)
