"""Records of a CSW as datasets: ISO 19139 (`gmd:MD_Metadata`) and Dublin Core (`csw:Record`)."""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from tamias.features.dcat.datasets.descriptions import is_web
from tamias.features.dcat.datasets.location import box_polygon
from tamias.features.dcat.datasets.mapping import RecordMapping
from tamias.features.dcat.datasets.records import first_agent
from tamias.features.dcat.datasets.terms import below
from tamias.features.portals.records.ckan import SERVICES
from tamias.features.portals.records.oai import OaiHeader, from_dublin_core
from tamias.features.portals.records.oai_xml import Element, content, inner, local
from tamias.model.dataset import Agent, AgentRole, Dataset, DcatProperty, Distribution, Period
from tamias.model.vocabulary import sound_iri

_HREF: Final = "{http://www.w3.org/1999/xlink}href"
_ROLES: Final = {
    "publisher": "dct:publisher",
    "owner": "dct:contributor",
    "author": "dct:creator",
    "originator": "dct:creator",
    "pointOfContact": "dcat:contactPoint",
}
_DOWNLOADS: Final = re.compile(r"download|file for|^https?\b.*\b(csv|zip|geojson|gml)\b", re.IGNORECASE)
_METRES: Final = frozenset({"m", "meter", "metre", "meters", "metres"})
_LANGUAGES: Final = {
    "bul": "bg", "cat": "ca", "cze": "cs", "ces": "cs", "dan": "da", "dut": "nl", "nld": "nl", "eng": "en",
    "est": "et", "fin": "fi", "fra": "fr", "fre": "fr", "ger": "de", "deu": "de", "gle": "ga", "gre": "el",
    "ell": "el", "hrv": "hr", "hun": "hu", "ice": "is", "isl": "is", "ita": "it", "lav": "lv", "lit": "lt",
    "mlt": "mt", "nor": "no", "pol": "pl", "por": "pt", "roh": "rm", "ron": "ro", "rum": "ro", "slk": "sk",
    "slo": "sk", "slv": "sl", "spa": "es", "swe": "sv",
}  # fmt: skip


def identifier_of(record: Element) -> str | None:
    """Return the identifier of a record."""
    is_iso = local(record) == "MD_Metadata"
    return _said(record, "fileIdentifier") if is_iso else content(_child(record, "identifier"))


def stamp_of(record: Element) -> str | None:
    """Return when a record was changed."""
    is_iso = local(record) == "MD_Metadata"
    return _said(record, "dateStamp") if is_iso else content(_child(record, "modified"))


def dataset_of(record: Element, catalogue: str) -> Dataset:
    """Read a record as a dataset. Raises `ValueError` for one without identifier."""
    identifier = identifier_of(record)
    if identifier is None:
        raise ValueError("it has no identifier")
    if local(record) == "MD_Metadata":
        return _IsoRecord(record, identifier, catalogue).dataset()
    return _from_csw_record(record, identifier, catalogue)


def _from_csw_record(record: Element, identifier: str, catalogue: str) -> Dataset:
    header = OaiHeader(identifier, stamp_of(record), deleted=False)
    found = from_dublin_core(record, header, catalogue, any_kind=True)
    assert found is not None
    boxes = [box for each in record.iter("{*}BoundingBox", "{*}WGS84BoundingBox") if (box := _corners(each))]
    files = tuple(
        _online(url, each.get("scheme"), None, None)
        for each in record.iter("{*}references", "{*}URI")
        if (url := content(each)) and is_web(url)
    )
    known = {each.url for each in files}
    return msgspec.structs.replace(
        found,
        iri=found.iri if is_web(found.iri) else below(catalogue, identifier, "dataset").value,
        spatial=(*found.spatial, *boxes),
        distributions=(*files, *(each for each in found.distributions if each.url not in known)),
    )


def _corners(box: Element) -> str | None:
    """Two corners as WKT. With a `urn:` for its system of reference, latitude comes first."""
    lower, upper = ((content(inner(box, f"{name}Corner")) or "").split() for name in ("Lower", "Upper"))
    if len(lower) != 2 or len(upper) != 2:
        return None
    is_swapped = (box.get("crs") or "").startswith("urn:") and "CRS84" not in (box.get("crs") or "")
    sides = [*lower[::-1], *upper[::-1]] if is_swapped else [*lower, *upper]
    return box_polygon(sides)


class _IsoRecord:
    """A `gmd:MD_Metadata`."""

    def __init__(self, record: Element, identifier: str, catalogue: str) -> None:
        self._record = record
        self._identifier = identifier
        self._catalogue = catalogue
        self._about = next(iter(_children(_child(record, "identificationInfo"))), record)
        self._citation = next(iter(_all(_child(self._about, "citation"), "CI_Citation")), None)
        self._locales = dict(_locales(record))

    def dataset(self) -> Dataset:
        """Return the dataset that the record describes."""
        about, citation = self._about, self._citation
        roles = list(_agents(self._record, about))
        codes = [code for each in _all(citation, "identifier") if (code := _said(each, "code"))]
        uses = [*_texts(about, "useLimitation"), *_texts(about, "otherConstraints")]
        dates = {
            _said(each, "dateType"): date
            for each in _all(citation, "CI_Date")
            if (date := _said(each, "date"))
        }
        return Dataset(
            iri=next(filter(is_web, codes), None)
            or below(self._catalogue, self._identifier, "dataset").value,
            record=self._identifier,
            title=_said(citation, "title") or self._identifier,
            description=_said(about, "abstract"),
            identifiers=tuple(dict.fromkeys([self._identifier, *codes])),
            keywords=tuple(dict.fromkeys(_texts(about, "keyword"))),
            groups=tuple(dict.fromkeys(_texts(about, "topicCategory"))),
            licence=next((url for each in self._anchors() if is_web(url := each)), None)
            or next(filter(is_web, uses), None),
            rights="\n\n".join(text for text in uses if not is_web(text)) or None,
            access_rights=next(iter(_texts(about, "accessConstraints")), None),
            publisher=first_agent(roles, "dct:publisher"),
            contact=first_agent(roles, "dcat:contactPoint"),
            issued=dates.get("publication") or dates.get("creation"),
            modified=dates.get("revision"),
            record_modified=_said(self._record, "dateStamp"),
            frequency=next(iter(_texts(about, "maintenanceAndUpdateFrequency")), None),
            language=tuple(dict.fromkeys(_language(each) for each in _texts(about, "language"))),
            spatial=tuple(dict.fromkeys(_places(about))),
            temporal=tuple(dict.fromkeys(_periods(about))),
            version=_said(citation, "edition"),
            provenance=next(iter(_texts(self._record, "statement")), None),
            conforms_to=tuple(dict.fromkeys(self._standards())),
            distributions=tuple(self._distributions()),
            kind=f"dcat:Dataset{'Series' * (_texts(self._record, 'hierarchyLevel') == ['series'])}",
            agents=tuple(_others(roles)),
            more=tuple(dict.fromkeys(self._properties())),
        )

    def _properties(self) -> Iterator[DcatProperty]:
        for name, elements in (
            ("dct:title", _all(self._citation, "title")),
            ("dct:description", _all(self._about, "abstract")),
            ("dcat:keyword", _all(self._about, "keyword")),
        ):
            for each in elements:
                yield from (DcatProperty(name, text, tag) for tag, text in self._translations(each))
        for text in _texts(self._citation, "alternateTitle"):
            yield DcatProperty("dct:alternative", text)
        for text in _texts(self._record, "hierarchyLevel"):
            yield DcatProperty("dct:type", text)
        for text in _texts(self._record, "parentIdentifier"):
            if sound_iri(text):
                yield DcatProperty("dct:isPartOf", text)
        for element in self._about.iter("{*}Distance"):
            length = content(element)
            if length and element.get("uom") in _METRES:
                yield DcatProperty("dcat:spatialResolutionInMeters", length)

    def _translations(self, element: Element) -> Iterator[tuple[str, str]]:
        for each in element.iter("{*}LocalisedCharacterString"):
            tag = self._locales.get((each.get("locale") or "").removeprefix("#"))
            if tag and (text := content(each)):
                yield tag, text

    def _anchors(self) -> Iterator[str]:
        """Addresses that constraints name: licences, mostly."""
        for name in ("useLimitation", "otherConstraints"):
            for element in _all(self._about, name):
                yield from (href for each in element.iter("{*}Anchor") if (href := each.get(_HREF)))

    def _standards(self) -> Iterator[str]:
        for element in _all(self._record, "referenceSystemInfo"):
            if code := _said(element, "code"):
                yield code
        for element in self._record.iter("{*}DQ_ConformanceResult"):
            title = _said(element, "title")
            if title and _said(element, "pass") == "true":
                yield title

    def _distributions(self) -> Iterator[Distribution]:
        distribution = inner(self._record, "distributionInfo")
        if distribution is None:
            return
        formats = [name for each in distribution.iter("{*}MD_Format") if (name := _said(each, "name"))]
        for each in distribution.iter("{*}CI_OnlineResource"):
            url = _said(each, "linkage")
            if url and is_web(url):
                form = formats[0] if len(formats) == 1 else None
                made = _online(url, _said(each, "protocol"), _said(each, "name"), form)
                is_file = _said(each, "function") == "download" and made.service is None
                yield msgspec.structs.replace(
                    made,
                    access_only=made.access_only and not is_file,
                    description=_said(each, "description"),
                )


def _online(url: str, protocol: str | None, title: str | None, form: str | None) -> Distribution:
    """A link with its protocol, such as `OGC:WMS` or `WWW:DOWNLOAD-1.0-http--download`."""
    words = re.split(r"[^a-z]+", (protocol or "").lower())
    kind = next((word for word in words if word in SERVICES), None)
    is_file = kind is None and bool(_DOWNLOADS.search(protocol or ""))
    return Distribution(
        url=url,
        title=title or protocol,
        format=form,
        access_only=not is_file,
        service=url if kind else None,
        service_kind=kind,
    )


def _agents(record: Element, about: Element) -> Iterator[AgentRole]:
    """Yield the agents of the data, then those of the record."""
    for name, elements in (("pointOfContact", about), ("distributorContact", record), ("contact", record)):
        for element in _all(elements, name) if name != "contact" else record.findall("{*}contact"):
            party = inner(element, "CI_ResponsibleParty")
            if party is None:
                continue
            person, organisation = _said(party, "individualName"), _said(party, "organisationName")
            email, page = _said(party, "electronicMailAddress"), _said(party, "linkage")
            if not (person or organisation or email):
                continue
            role = _said(party, "role") or ""
            names = " / ".join(filter(None, [organisation, person])) or email or ""
            yield AgentRole(
                property="dcat:contactPoint" if name == "contact" else _ROLES.get(role, "dct:contributor"),
                agent=Agent(name=names, email=email, homepage=page if is_web(page) else None),
            )


def _others(roles: list[AgentRole]) -> Iterator[AgentRole]:
    """Yield all but the first publisher and the first contact, each once."""
    first: set[str] = set()
    for each in dict.fromkeys(roles):
        if each.property in ("dct:publisher", "dcat:contactPoint") and each.property not in first:
            first.add(each.property)
        elif each.property == "dct:publisher":
            yield AgentRole(property="dct:contributor", agent=each.agent)
        else:
            yield each


def _places(about: Element) -> Iterator[str]:
    sides = ("westBoundLongitude", "southBoundLatitude", "eastBoundLongitude", "northBoundLatitude")
    for each in about.iter("{*}EX_GeographicBoundingBox"):
        if polygon := box_polygon([_said(each, side) or "" for side in sides]):
            yield polygon
    for each in about.iter("{*}EX_GeographicDescription"):
        yield from _texts(each, "code")


def _periods(about: Element) -> Iterator[Period]:
    for each in about.iter("{*}EX_TemporalExtent"):
        start, end = content(inner(each, "beginPosition")), content(inner(each, "endPosition"))
        moment = content(inner(each, "timePosition"))
        if start or end or moment:
            yield Period(start or moment, end or moment)


def _locales(record: Element) -> Iterator[tuple[str, str]]:
    for each in record.iter("{*}PT_Locale"):
        code = next((one.get("codeListValue") for one in each.iter("{*}LanguageCode")), None)
        if code and (name := each.get("id")):
            yield name, _language(code)


def _language(code: str) -> str:
    """A language's tag.

    >>> _language("ger"), _language("de"), _language("xyz")
    ('de', 'de', 'xyz')
    """
    return _LANGUAGES.get(code.strip().lower()[:3], code.strip().lower())


def _children(element: Element | None) -> list[Element]:
    return list(element.iterchildren("{*}*")) if element is not None else []


def _child(element: Element | None, name: str) -> Element | None:
    return element.find(f"{{*}}{name}") if element is not None else None


def _all(element: Element | None, name: str) -> list[Element]:
    return list(element.iter(f"{{*}}{name}")) if element is not None else []


def _texts(element: Element | None, name: str) -> list[str]:
    return [text for each in _all(element, name) if (text := _value(each))]


def _said(element: Element | None, name: str) -> str | None:
    """The first value of that name; one that stands directly in the element comes before all others."""
    direct = _child(element, name)
    return _value(direct) if direct is not None else next(iter(_texts(element, name)), None)


def _value(element: Element) -> str | None:
    """The text of a property, or the code that it names; of several languages, the record's own."""
    for each in _children(element):
        if local(each) in ("PT_FreeText", "MD_Identifier", "RS_Identifier", "CI_Citation"):
            continue
        text = content(each) if not len(each) else None
        if found := text or each.get("codeListValue"):
            return found
    if len(element):
        return None
    return content(element) or element.get("codeListValue")


ISO_MAPPING: Final = RecordMapping("csw-iso", dataset_of)
DUBLIN_CORE_MAPPING: Final = RecordMapping("csw-dc", dataset_of)
