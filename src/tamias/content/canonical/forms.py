"""The form of a content: how a file of some media type is compared with another."""

from enum import StrEnum

from pyoxigraph import RdfFormat


class Form(StrEnum):
    """What a file is made of."""

    ROWS = "rows"
    STATEMENTS = "statements"
    JSON = "json"
    JSON_LINES = "json-lines"
    MEMBERS = "members"
    GZIP = "gzip"
    TEXT = "text"
    BYTES = "bytes"


SYNTAXES = {
    "text/turtle": RdfFormat.TURTLE,
    "application/x-turtle": RdfFormat.TURTLE,
    "application/n-triples": RdfFormat.N_TRIPLES,
    "application/n-quads": RdfFormat.N_QUADS,
    "text/x-nquads": RdfFormat.N_QUADS,
    "application/trig": RdfFormat.TRIG,
    "application/x-trig": RdfFormat.TRIG,
    "application/rdf+xml": RdfFormat.RDF_XML,
    "application/owl+xml": RdfFormat.RDF_XML,
    "application/ld+json": RdfFormat.JSON_LD,
}

_FORMS = {
    "text/csv": Form.ROWS,
    "application/csv": Form.ROWS,
    "text/comma-separated-values": Form.ROWS,
    "text/tab-separated-values": Form.ROWS,
    "application/json": Form.JSON,
    "text/json": Form.JSON,
    "application/x-ndjson": Form.JSON_LINES,
    "application/ndjson": Form.JSON_LINES,
    "application/jsonl": Form.JSON_LINES,
    "application/json-lines": Form.JSON_LINES,
    "application/json-seq": Form.BYTES,
    "application/x-jsonlines": Form.JSON_LINES,
    "application/gzip": Form.GZIP,
    "application/x-gzip": Form.GZIP,
    "application/zip": Form.MEMBERS,
    "application/x-zip-compressed": Form.MEMBERS,
    "application/vnd.google-earth.kmz": Form.MEMBERS,
    "application/java-archive": Form.MEMBERS,
    "application/xml": Form.TEXT,
    "application/sql": Form.TEXT,
    "application/javascript": Form.TEXT,
}
_MADE_OF_ZIP = ("application/vnd.openxmlformats-officedocument.", "application/vnd.oasis.opendocument.")


def form_of(media_type: str | None) -> Form:
    """The form of a media type, with or without parameters; bytes when nothing is known of it.

    >>> form_of("text/csv; charset=utf-8").value, form_of("application/geo+json").value
    ('rows', 'json')
    """
    name = _bare(media_type)
    if name in _FORMS:
        return _FORMS[name]
    if name in SYNTAXES:
        return Form.STATEMENTS
    if name.startswith(_MADE_OF_ZIP) or name.endswith("+zip"):
        return Form.MEMBERS
    if name.endswith("+json"):
        return Form.JSON
    return Form.TEXT if name.startswith("text/") or name.endswith("+xml") else Form.BYTES


def syntax_of(media_type: str | None) -> RdfFormat | None:
    """The RDF syntax of a media type, if it is one."""
    return SYNTAXES.get(_bare(media_type))


def _bare(media_type: str | None) -> str:
    return (media_type or "").partition(";")[0].strip().lower()
