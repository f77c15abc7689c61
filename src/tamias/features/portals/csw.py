"""Harvester for CSW 2.0.2 (GeoNetwork, pycsw): pages of GetRecords in ISO 19139, else in Dublin Core."""

from functools import partial
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from lxml import etree

from tamias.features.dcat.datasets.mapping import MappedRecord, map_element
from tamias.features.dcat.datasets.records import MOST_PAGE, failure
from tamias.features.portals.paging.listing import ChangeOrder, PortalListing, RecordPage
from tamias.features.portals.paging.position import Position
from tamias.features.portals.paging.ways import Portal
from tamias.features.portals.records.csw import (
    DUBLIN_CORE_MAPPING,
    ISO_MAPPING,
    dataset_of,
    identifier_of,
    stamp_of,
)
from tamias.features.portals.records.oai_xml import BARE, Element, content, inner, local
from tamias.model.capture import Outcome, Request
from tamias.model.finding import HarvestEnd
from tamias.protocols import PoliteClient

PAGE_RECORDS: Final = 100
_GMD: Final = "http://www.isotc211.org/2005/gmd"
_CSW: Final = "http://www.opengis.net/cat/csw/2.0.2"
_ACCEPT: Final = "application/xml, text/xml;q=0.9"
_OWN: Final = frozenset({
    "service", "version", "request", "typenames", "elementsetname", "resulttype", "startposition",
    "maxrecords", "outputschema", "constraint", "constraintlanguage", "constraint_language_version",
    "acceptversions",
})  # fmt: skip
"""Parameters that the harvester sets itself, whatever the address says."""


def _address(schema: str, place: Position, start: int, size: int) -> tuple[str, int]:
    changes = {
        "constraintLanguage": "CQL_TEXT",
        "constraint_language_version": "1.1.0",
        "constraint": f"dct:modified >= '{place.since[: len('2024-01-31T12:00:00')]}'",
    }
    words = {
        "request": "GetRecords",
        "typeNames": "csw:Record",
        "elementSetName": "full",
        "resultType": "results",
        "outputSchema": schema,
        "startPosition": str(start + 1),
        "maxRecords": str(size),
        **(changes if place.since else {}),
    }
    return _url(place, words), start


def _url(place: Position, words: dict[str, str]) -> str:
    query = urlencode([("service", "CSW"), ("version", "2.0.2"), *words.items(), *parse_qsl(place.query)])
    return f"{place.root}?{query}"


def _page(raw: bytes) -> RecordPage:
    root = _root(raw)
    results = inner(root, "SearchResults")
    if results is None:
        raise ValueError(_why(root))
    records = [each for each in results.iterchildren("{*}*") if isinstance(each.tag, str)]
    matched = (results.get("numberOfRecordsMatched") or "").strip()
    return RecordPage(records, int(matched[:18]) if matched.isascii() and matched.isdigit() else None)


def _record(record: Element, catalogue: str) -> MappedRecord:
    mapping = ISO_MAPPING if local(record) == "MD_Metadata" else DUBLIN_CORE_MAPPING
    return map_element(mapping, record, dataset_of(record, catalogue), catalogue)


def _key(record: Element) -> str:
    if (identifier := identifier_of(record)) is None:
        raise ValueError("it has no identifier")
    return identifier


def _listing(schema: str) -> PortalListing:
    return PortalListing(
        name="CSW",
        address=partial(_address, schema),
        page=_page,
        read=_record,
        key=_key,
        accept=_ACCEPT,
        order=ChangeOrder("dct:modified", stamp_of),
        largest=PAGE_RECORDS,
        ordered=False,
        pages=True,
        refused_for_size=frozenset({400}),
    )


async def _find(url: str, client: PoliteClient) -> Position | HarvestEnd:
    """Read the capabilities: title, provider, and the forms of records."""
    parts = urlsplit(url)
    own = [each for each in parse_qsl(parts.query) if each[0].lower() not in _OWN]
    place = Position(
        root=urlunsplit((parts.scheme, parts.netloc, parts.path, "", "")), query=urlencode(own), requests=1
    )
    capture = await client.ask(Request(url=_url(place, {"request": "GetCapabilities"}), accept=_ACCEPT))
    if end := failure(capture, "the capabilities of"):
        return end
    try:
        root = _root(client.body(capture, MOST_PAGE))
        if local(root) != "Capabilities":
            raise ValueError(_why(root))
    except ValueError as error:
        return HarvestEnd(outcome=Outcome.FAILED, reason=f"{capture.url}: {error}")
    schemas = {content(value) for value in root.iter("{*}Value")}
    place.stage = "Dublin Core" if _CSW in schemas and _GMD not in schemas else ""
    place.title = content(inner(root, "Title")) or ""
    place.publisher = content(inner(root, "ProviderName")) or ""
    return place


def _root(raw: bytes) -> Element:
    """Parse a document. Raise `ValueError` for what is no XML, or declares a document type."""
    try:
        root = etree.fromstring(raw, etree.XMLParser(**BARE))
    except etree.XMLSyntaxError:
        root = None
    if root is None or root.getroottree().docinfo.internalDTD is not None:
        raise ValueError("no XML")
    return root


def _why(root: Element) -> str:
    """Describe an answer that is not the expected one."""
    text = content(inner(root, "ExceptionText")) if local(root) == "ExceptionReport" else None
    return text or f"<{local(root)[:50]}> is not the answer of a CSW"


WAYS: Final = {"ISO 19139": _listing(_GMD), "Dublin Core": _listing(_CSW)}
CswHarvester = partial(Portal, "csw", _find, WAYS)
