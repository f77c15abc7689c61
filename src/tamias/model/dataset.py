"""A dataset as a catalogue describes it, whatever the catalogue's own words are.

The harvester of each portal turns its records into these; what becomes of them (DCAT, rows) is the same.
"""

import msgspec


class DcatProperty(msgspec.Struct, frozen=True):
    """A further property of a dataset or a distribution, or its text in a further language.

    Which properties there are, and what their values become, is the table in `harvesters.dcat`.
    """

    name: str
    """Its short name, such as `dct:title`."""
    value: str
    language: str | None = None
    label: str | None = None
    """The label of a value that is an IRI."""


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """A person or an organisation: who publishes a dataset, or who answers for it."""

    name: str
    names: tuple[tuple[str, str], ...] = ()
    """The name in several languages: the tag, then the name."""
    iri: str | None = None
    email: str | None = None
    homepage: str | None = None
    kind: str | None = None
    """The IRI of a type, such as one of the ADMS publisher types, or a word."""
    identifier: str | None = None


class AgentRole(msgspec.Struct, frozen=True, kw_only=True):
    """The role of an agent for a dataset."""

    property: str
    """`dct:creator`, `dct:contributor`, `dcat:contactPoint` or `prov:qualifiedAttribution`."""
    agent: Agent
    role: str | None = None
    """The IRI of the role that an attribution is qualified with."""


class QualifiedRelation(msgspec.Struct, frozen=True, kw_only=True):
    """A related resource, and its role for the dataset."""

    target: str
    role: str | None = None


class NamedPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A place by several of its properties; geometries are WKT or GeoJSON text."""

    iri: str | None = None
    names: tuple[tuple[str | None, str], ...] = ()
    geometry: str | None = None
    bbox: str | None = None
    centroid: str | None = None


class DataService(msgspec.Struct, frozen=True, kw_only=True):
    """A service that gives access to a distribution."""

    endpoints: tuple[str, ...]
    iri: str | None = None
    title: str | None = None
    serves: tuple[str, ...] = ()
    more: tuple[DcatProperty, ...] = ()


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """A form in which a dataset is available. Texts are as the portal gives them."""

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
    access_url: str | None = None
    """The page about it, where the portal names one beside the data."""
    services: tuple[DataService, ...] = ()
    more: tuple[DcatProperty, ...] = ()


class Period(msgspec.Struct, frozen=True):
    """A span of time; either end may be open. ISO 8601 as given."""

    start: str | None = None
    end: str | None = None


class Dataset(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset of a catalogue."""

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
    kind: str = "dcat:Dataset"
    """Its class in DCAT: also series, catalogues, services and records of catalogues are described so."""
    parts: tuple["Dataset", ...] = ()
    """Of a catalogue: the catalogues, services, series and records in it."""
    portal: str | None = None
    """The portal it is from, where the source is a list of what other portals have."""
    agents: tuple[AgentRole, ...] = ()
    """Those beside publisher, creator and contact."""
    places: tuple[NamedPlace, ...] = ()
    relations: tuple[QualifiedRelation, ...] = ()
    more: tuple[DcatProperty, ...] = ()
