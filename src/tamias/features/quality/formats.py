"""Media types and licences: which are known, open, machine-readable, and when one is as good as another."""

import re
from typing import Final

from tamias.content.formats import bare_type, is_rdf, media_type_of

_REGISTERED: Final = re.compile(
    r"(application|audio|font|haptics|image|message|model|multipart|text|video)/(?!x-|x\.)[a-z0-9][\w.+-]{0,120}",
    re.ASCII,
)
_NO_PROMISE: Final = frozenset({"application/octet-stream", "application/x-download", "binary/octet-stream"})

_DATA: Final = frozenset({
    "text/csv", "text/tab-separated-values", "application/json", "application/x-ndjson", "application/xml",
    "application/vnd.oasis.opendocument.spreadsheet", "application/vnd.apache.parquet",
    "application/geopackage+sqlite3", "application/vnd.sqlite3", "application/netcdf", "application/x-hdf5",
    "application/sparql-results+json",
})  # fmt: skip
_DATA_OF_A_VENDOR: Final = frozenset({
    "application/vnd.ms-excel", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.ms-access", "application/msaccess",
})  # fmt: skip
_OPEN_BUT_FOR_PEOPLE: Final = frozenset({
    "text/plain", "text/html", "application/xhtml+xml", "application/pdf", "text/markdown", "image/png",
    "image/jpeg", "image/svg+xml", "image/tiff", "image/gif", "application/zip", "application/gzip",
    "application/vnd.oasis.opendocument.text", "application/x-tar", "application/zstd",
    "application/epub+zip",
})  # fmt: skip
_PEOPLE_ONLY: Final = frozenset({"application/xhtml+xml", "image/svg+xml"})


def promised_type(media_type: str | None, format_name: str | None) -> str | None:
    """The media type that a description promises, by its own word or a short name; None for no promise."""
    for word in (media_type, format_name):
        found = media_type_of(word)
        if found is not None and found not in _NO_PROMISE:
            return bare_type(found)
    return None


def is_registered(kind: str | None) -> bool:
    """Return whether a type has the form of those that IANA registers, without looking it up."""
    return kind is not None and _REGISTERED.fullmatch(kind) is not None


def is_machine_readable(kind: str | None) -> bool:
    """Return whether programs can read the data of this type."""
    if kind is None or kind in _PEOPLE_ONLY:
        return False
    return kind in _DATA or is_rdf(kind) or kind in _DATA_OF_A_VENDOR or kind.endswith(("+json", "+xml"))


def is_open(kind: str | None) -> bool:
    """Return whether the format is open."""
    if kind is None:
        return False
    return kind in _DATA or is_rdf(kind) or kind in _OPEN_BUT_FOR_PEOPLE or kind.endswith(("+json", "+xml"))


def same_format(promised: str, found: str) -> bool:
    """Return whether the found type is the promised one or a special case of it.

    >>> same_format("application/json", "application/geo+json"), same_format("text/csv", "text/html")
    (True, False)
    """
    promised, found = bare_type(promised), bare_type(found)
    if promised == found:
        return True
    if promised == "application/json":
        return found.endswith("+json") or found == "application/x-ndjson"
    if promised == "application/xml":
        return found.endswith("+xml") and found != "application/xhtml+xml"
    if promised == "text/plain":
        return found.startswith("text/") and found != "text/html"
    return promised == "text/html" and found == "application/xhtml+xml"


_OPEN: Final = (
    r"creativecommons\.org/(licenses/by(-sa)?/|publicdomain/)",
    r"\bcc[ -]?(zero|0|by([ -]?sa)?)\b(?![ -]?(nc|nd))",
    r"opendatacommons\.org/licenses/(pddl|by|odbl)",
    r"\b(pddl|odc[ -](by|pddl|odbl)|odbl)\b",
    r"nationalarchives\.gov\.uk/doc/open-government-licen[cs]e|\b(uk[ -])?ogl\b|open government licen[cs]e",
    r"govdata\.de/dl-de/(by|zero)|\bdl[ -]de[ -/](by|zero)\b",
    r"etalab|licence[ -]ouverte|\blov2\b|\bfr[ -]lo\b",
    r"dati\.gov\.it/iodl|\biodl\b",
    r"data\.norge\.no/nlod|\bnlod\b",
    r"publications\.europa\.eu/resource/authority/licence/(cc0|cc_?by(_?sa)?(_\d|$)|odc|odbl|ogl|pddl|iodl|nlod|dl_de)",
    r"gnu\.org/(copyleft|licenses)/(l?gpl|fdl)|\bgfdl\b",
    r"opensource\.org/licenses/(mit|bsd|apache)",
    r"\bpublic[ -]domain\b|\bcc[ -]?pddc?\b|\bother[ -](open|pd|at)\b",
)
_CLOSED: Final = (
    r"creativecommons\.org/licenses/by-n[cd]",
    r"\bcc[ -]by[ -](nc|nd)",
    r"publications\.europa\.eu/resource/authority/licence/",
    r"govdata\.de/dl-de/|\bother[ -](closed|nc)\b",
)
_AN_OPEN_ONE: Final = re.compile("|".join(_OPEN))
_A_KNOWN_ONE: Final = re.compile("|".join(_OPEN + _CLOSED))


def is_known_licence(licence: str | None) -> bool:
    """Return whether a text names a licence of the public lists, by address or usual name.

    >>> is_known_licence("https://creativecommons.org/licenses/by-nc/4.0/"), is_known_licence("see website")
    (True, False)
    """
    return licence is not None and _A_KNOWN_ONE.search(_plain(licence)) is not None


def is_open_licence(licence: str | None) -> bool:
    """Return whether a text names a licence that is open by the Open Definition.

    >>> is_open_licence("CC BY-SA 4.0"), is_open_licence("cc-by-nc-4.0")
    (True, False)
    """
    return licence is not None and _AN_OPEN_ONE.search(_plain(licence)) is not None


def _plain(text: str) -> str:
    """Return a text in small letters, with hyphens for underscores unless it is an address."""
    lowered = text.lower()
    return lowered if "://" in lowered else lowered.replace("_", "-")
