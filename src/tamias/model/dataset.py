"""A dataset as a catalogue describes it, whatever the catalogue's own words are.

The harvester of each portal turns its records into these; what becomes of them (DCAT, rows) is the same.
"""

import msgspec


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """A person or an organisation: who publishes a dataset, or who answers for it."""

    name: str
    iri: str | None = None
    email: str | None = None
    homepage: str | None = None
    kind: str | None = None
    """The IRI of a type, such as one of the ADMS publisher types."""


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """One form in which a dataset can be had. Texts are as the portal gives them."""

    url: str
    """Where it leads: `access_only` says that it is a page about the data, not the data."""
    iri: str | None = None
    access_only: bool = False
    title: str | None = None
    description: str | None = None
    media_type: str | None = None
    format: str | None = None
    """The portal's own word, such as `CSV`."""
    licence: str | None = None
    rights: str | None = None
    byte_size: int | None = None
    sha256: str | None = None
    checksum: tuple[str, str] | None = None
    """Algorithm and value, where it is another than SHA-256."""
    issued: str | None = None
    modified: str | None = None
    language: tuple[str, ...] = ()
    conforms_to: tuple[str, ...] = ()
    service: str | None = None
    """The endpoint of a data service, where the distribution is one: SPARQL, WFS, an API."""
    service_kind: str | None = None
    """`sparql`, `wfs`, ... as far as it is known."""


class Period(msgspec.Struct, frozen=True):
    """A span of time; either end may be open. ISO 8601 as given."""

    start: str | None = None
    end: str | None = None


class Dataset(msgspec.Struct, frozen=True, kw_only=True):
    """One dataset of a catalogue."""

    iri: str
    """Its name in RDF: the catalogue's own where that is a sound absolute IRI."""
    record: str
    """The catalogue's identifier of its record, as it stands; within one catalogue it is unique."""
    title: str
    title_language: str | None = None
    description: str | None = None
    identifiers: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    themes: tuple[str, ...] = ()
    """IRIs; a word that is none is a keyword."""
    groups: tuple[str, ...] = ()
    """The portal's own groups or categories, by title."""
    landing_page: str | None = None
    licence: str | None = None
    rights: str | None = None
    access_rights: str | None = None
    publisher: Agent | None = None
    creator: Agent | None = None
    contact: Agent | None = None
    issued: str | None = None
    modified: str | None = None
    record_issued: str | None = None
    """When the catalogue took it in, as against when the data appeared."""
    record_modified: str | None = None
    frequency: str | None = None
    language: tuple[str, ...] = ()
    spatial: tuple[str, ...] = ()
    """Names, IRIs, or geometries as WKT or GeoJSON text."""
    temporal: tuple[Period, ...] = ()
    version: str | None = None
    provenance: str | None = None
    conforms_to: tuple[str, ...] = ()
    distributions: tuple[Distribution, ...] = ()
