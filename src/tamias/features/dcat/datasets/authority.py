"""Words of portals, as the authority lists that DCAT-AP asks for name them: frequency, format, language, …"""

import re
from typing import Final

EU: Final = "http://publications.europa.eu/resource/authority/"

_FREQUENCIES: Final = {
    "CONT": "always continuous continuously cont realtime real-time R/PT1S http://purl.org/cld/freq/continuous",
    "UPDATE_CONT": "update_cont continuouslyupdated continual R/PT0S",
    "HOURLY": "hourly R/PT1H",
    "DAILY_2": "daily_2 twice-daily semidaily R/PT12H",
    "DAILY": "daily R/P1D everyday",
    "WEEKLY_3": "weekly_3 threetimesaweek R/P0.33W",
    "WEEKLY_2": "weekly_2 semiweekly R/P3.5D",
    "WEEKLY": "weekly R/P1W R/P7D",
    "MONTHLY_3": "monthly_3 threetimesamonth R/P0.33M",
    "MONTHLY_2": "monthly_2 semimonthly R/P0.5M",
    "BIWEEKLY": "biweekly fortnightly R/P2W R/P14D",
    "MONTHLY": "monthly R/P1M",
    "BIMONTHLY": "bimonthly R/P2M",
    "QUARTERLY": "quarterly R/P3M",
    "ANNUAL_3": "annual_3 threetimesayear R/P4M",
    "ANNUAL_2": "annual_2 semiannual biannual biannually R/P6M",
    "ANNUAL": "annual annually yearly R/P1Y R/P12M",
    "BIENNIAL": "biennial biennially R/P2Y",
    "TRIENNIAL": "triennial R/P3Y",
    "QUADRENNIAL": "quadrennial R/P4Y",
    "QUINQUENNIAL": "quinquennial R/P5Y",
    "DECENNIAL": "decennial R/P10Y",
    "AS_NEEDED": "as_needed asneeded",
    "IRREG": "irreg irregular",
    "NOT_PLANNED": "not_planned notplanned",
    "NEVER": "never punctual static",
    "UNKNOWN": "unknown",
    "OTHER": "other",
}
_FREQUENCY_OF: Final = {word.lower(): code for code, words in _FREQUENCIES.items() for word in words.split()}
_CLD: Final = "http://purl.org/cld/freq/"

_FILE_TYPES: Final = {
    "CSV": "text/csv", "TSV": "text/tab-separated-values", "JSON": "application/json",
    "XML": "application/xml", "HTML": "text/html", "TXT": "text/plain", "PDF": "application/pdf",
    "ZIP": "application/zip", "GZIP": "application/gzip", "TAR": "application/x-tar",
    "XLS": "application/vnd.ms-excel",
    "XLSX": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "ODS": "application/vnd.oasis.opendocument.spreadsheet",
    "DOCX": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "GEOJSON": "application/geo+json", "KML": "application/vnd.google-earth.kml+xml",
    "KMZ": "application/vnd.google-earth.kmz", "GML": "application/gml+xml",
    "GPKG": "application/geopackage+sqlite3", "SHP": "", "TIFF": "image/tiff", "PNG": "image/png",
    "JPEG": "image/jpeg",
    "JSON_LD": "application/ld+json", "RDF": "", "RDF_XML": "application/rdf+xml",
    "RDF_TURTLE": "text/turtle", "RDF_N_TRIPLES": "application/n-triples",
    "RDF_N_QUADS": "application/n-quads", "RDF_TRIG": "application/trig", "N3": "text/n3",
    "SPARQLQ": "application/sparql-query", "WFS_SRVC": "", "WMS_SRVC": "",
}  # fmt: skip
_FILE_TYPE_OF: Final = {kind.lower(): code for code, kind in _FILE_TYPES.items() if kind} | {
    **{code.lower().replace("_", ""): code for code in _FILE_TYPES},
    "text": "TXT", "excel": "XLS", "geo.json": "GEOJSON", "shapefile": "SHP", "geopackage": "GPKG",
    "turtle": "RDF_TURTLE", "ttl": "RDF_TURTLE", "nt": "RDF_N_TRIPLES", "nq": "RDF_N_QUADS",
    "trig": "RDF_TRIG", "ntriples": "RDF_N_TRIPLES", "gz": "GZIP", "jpg": "JPEG", "tif": "TIFF",
    "htm": "HTML", "wfs": "WFS_SRVC", "wms": "WMS_SRVC",
    "application/x-gzip": "GZIP", "application/vnd.geo+json": "GEOJSON", "text/xml": "XML",
}  # fmt: skip

_ACCESS: Final = {
    "public": "PUBLIC",
    "open": "PUBLIC",
    "restrictedpublic": "RESTRICTED",
    "restricted": "RESTRICTED",
    "nonpublic": "NON_PUBLIC",
}
SERVICE_TYPES: Final = {
    "sparql": "http://www.w3.org/TR/sparql11-protocol/",
    **{
        kind: f"http://www.opengis.net/def/serviceType/ogc/{kind}"
        for kind in ("csw", "wcs", "wfs", "wms", "wmts")
    },
}
"""The standard that a kind of service follows."""

_MEDIA_TYPE = re.compile(
    r"(application|audio|font|haptics|image|message|model|multipart|text|video)/[A-Za-z0-9][\w.+-]{0,120}",
    re.ASCII | re.IGNORECASE,
)
_CREATIVE_COMMONS = re.compile(r"cc-(by(?:-sa|-nc|-nd|-nc-sa|-nc-nd)?)-4\.0(?:-international)?")
_LICENCES: Final = {
    "cc0": "CC0", "cc0-1.0": "CC0", "cc-zero": "CC0",
    "odc-by": "ODC_BY", "odc-by-1.0": "ODC_BY", "odc-odbl": "ODC_BL", "odbl-1.0": "ODC_BL", "odbl": "ODC_BL",
    "odc-pddl": "ODC_PDDL", "pddl-1.0": "ODC_PDDL",
}  # fmt: skip
_LANGUAGE_TAG = re.compile(r"([A-Za-z]{2,3})(?:[-_][A-Za-z0-9]{2,8})*")


def licence_iri(word: str | None) -> str | None:
    """The EU licence that a name with its version stands for; None for any other, and for an address.

    >>> licence_iri("CC-BY-SA-4.0").rpartition("/")[2], licence_iri("cc0-1.0").rpartition("/")[2]
    ('CC_BYSA_4_0', 'CC0')
    >>> licence_iri("cc-by"), licence_iri("https://example.org/terms")
    (None, None)
    """
    plain = re.sub(r"[\s_-]+", "-", (word or "").strip().lower())
    if found := _CREATIVE_COMMONS.fullmatch(plain):
        return f"{EU}licence/CC_{found[1].upper().replace('-', '')}_4_0"
    code = _LICENCES.get(plain)
    return f"{EU}licence/{code}" if code else None


def frequency_iri(word: str) -> str | None:
    """The EU frequency that a word, an ISO 8601 repetition or another list's IRI stands for.

    >>> frequency_iri("R/P1D"), frequency_iri("annually"), frequency_iri("whenever")
    ('http://publications.europa.eu/resource/authority/frequency/DAILY', \
'http://publications.europa.eu/resource/authority/frequency/ANNUAL', None)
    """
    plain = word.strip().removeprefix(_CLD).lower()
    code = _FREQUENCY_OF.get(plain) or _FREQUENCY_OF.get(re.sub(r"[\s_-]+", "", plain))
    return f"{EU}frequency/{code}" if code else None


def repetition(word: str | None) -> str | None:
    """A frequency as an ISO 8601 repetition, or `irregular`; None where it is neither.

    >>> repetition("http://publications.europa.eu/resource/authority/frequency/ANNUAL"), repetition("daily")
    ('R/P1Y', 'R/P1D')
    """
    code = (word or "").rpartition("/frequency/")[2]
    code = code if code in _FREQUENCIES else (frequency_iri(word or "") or "").rpartition("/")[2]
    if code in ("IRREG", "AS_NEEDED"):
        return "irregular"
    return next((each for each in _FREQUENCIES.get(code, "").split() if each.startswith("R/")), None)


def file_type(word: str) -> str | None:
    """The code in the EU list of file types of a portal's word for a format.

    >>> file_type("GeoJSON"), file_type("JSON-LD"), file_type(".csv"), file_type("CSV files")
    ('GEOJSON', 'JSON_LD', 'CSV', None)
    """
    plain = word.strip().lower().lstrip(".")
    return _FILE_TYPE_OF.get(plain) or _FILE_TYPE_OF.get(re.sub(r"[\s_/-]+", "", plain))


def media_type(word: str | None) -> str | None:
    """A media type without parameters; None for what is none.

    >>> media_type("Text/CSV; charset=utf-8"), media_type("csv")
    ('text/csv', None)
    """
    found = _MEDIA_TYPE.fullmatch((word or "").partition(";")[0].strip())
    return found[0].lower() if found else None


def language_iri(tag: str) -> str | None:
    """The Library of Congress's IRI of a language, as DCAT 3 asks for; None for what is no tag.

    >>> language_iri("de-AT"), language_iri("German")
    ('http://id.loc.gov/vocabulary/iso639-1/de', None)
    """
    found = _LANGUAGE_TAG.fullmatch(tag.strip())
    if found is None:
        return None
    part = "iso639-1" if len(found[1]) == 2 else "iso639-2"
    return f"http://id.loc.gov/vocabulary/{part}/{found[1].lower()}"


def access_iri(word: str) -> str | None:
    """The EU access right that a word stands for.

    >>> access_iri("non-public")
    'http://publications.europa.eu/resource/authority/access-right/NON_PUBLIC'
    """
    code = _ACCESS.get(re.sub(r"[\s_-]+", "", word.strip().lower()))
    return f"{EU}access-right/{code}" if code else None
