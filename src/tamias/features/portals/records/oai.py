"""The metadata of OAI-PMH records as datasets: Dublin Core, DataCite, and what is like them."""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from lxml import etree
from pyoxigraph import NamedNode, Quad, RdfFormat, parse

from tamias.content.blank_labels import Labels
from tamias.features.dcat.datasets.descriptions import Descriptions, is_web
from tamias.features.dcat.datasets.from_dcat import datasets_in
from tamias.features.dcat.datasets.location import box_polygon, is_number
from tamias.features.dcat.datasets.mapping import RecordMapping, element_of, map_stored_element
from tamias.features.dcat.datasets.terms import DCAT, below
from tamias.features.portals.paging.position import digest
from tamias.features.portals.records.oai_xml import Element, content, inner, local, space
from tamias.model.dataset import Agent, AgentRole, Dataset, DcatProperty, Distribution, Period
from tamias.model.finding import SourceRecord
from tamias.model.vocabulary import sound_iri

_TEXTS: Final = {
    "title": "dct:title",
    "description": "dct:description",
    "abstract": "dct:description",
    "subject": "dcat:keyword",
}
_LISTS: Final = NamedNode(DCAT + "dataset")
_XML_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_DOI = re.compile(r"(?i)(?:doi:\s*|https?://(?:dx\.)?doi\.org/)?(10\.\d{4,9}/\S+)")
_DATA_FILE = re.compile(
    r"(?i)\.((?:csv|tsv|json|geojson|jsonld|ttl|nt|nq|trig|rdf|xml|xlsx?|ods|parquet|nc|h5|hdf5?|sav|dta|shp|"
    r"gpkg|kml|sqlite|txt|zip|tar|tgz|gz|bz2|xz|zst|7z)(?:\.(?:gz|bz2|xz|zst))?)$"
)
_NO_DATA = re.compile(
    r"(?i)\b(?:text|article|articulo|aufsatz|book(?:part)?|chapter|thesis|dissertation|preprint|paper|report|"
    r"lecture|presentation|poster|proposal|review|still ?image|image|moving ?image|video|audiovisual|sound|"
    r"software|patent|event|physicalobject|journal)"
)
_DATA = re.compile(r"(?i)data|collection|database|workflow|model|survey|statistic")
_RANGE = re.compile(r"\s*([^/]*?)\s*/\s*([^/]*?)\s*")


class OaiHeader(NamedTuple):
    """The header of a record."""

    identifier: str
    datestamp: str | None
    deleted: bool


def header_of(record: Element) -> OaiHeader:
    """Return the header. Raises `ValueError` for a record without an identifier."""
    header = inner(record, "header")
    identifier = content(inner(header, "identifier")) if header is not None else None
    if header is None or identifier is None:
        raise ValueError("a record without identifier")
    return OaiHeader(identifier, content(inner(header, "datestamp")), header.get("status") == "deleted")


def dataset_of(record: Element, header: OaiHeader, catalogue: str) -> Dataset | None:
    """Read a record as a dataset; None where it is about something else.

    Raises `ValueError` for a record without metadata, or without a title.
    """
    metadata = inner(record, "metadata")
    if metadata is None or not len(metadata):
        raise ValueError("it has no metadata")
    resource = inner(metadata, "resource")
    if resource is not None and "datacite" in space(resource):
        return _from_datacite(resource, header, catalogue)
    return from_dublin_core(metadata, header, catalogue)


def from_dublin_core(
    metadata: Element, header: OaiHeader, catalogue: str, *, any_kind: bool = False
) -> Dataset | None:
    """Read Dublin Core as a dataset; None where it is about something else.

    With `any_kind` everything is taken, as in a catalogue that has nothing but data.
    """
    said = _Words(metadata)
    if not any_kind and _is_no_data(said.all("type")):
        return None
    identifiers = said.all("identifier")
    pages = list(filter(None, map(_address, identifiers)))
    files = [
        url for url in filter(is_web, (*pages, *said.all("relation", "source"))) if _DATA_FILE.search(url)
    ]
    rights = said.all("license", "rights", "accessRights")
    return _dataset(
        said, header, catalogue, identifiers, pages,
        description="\n\n".join(said.all("description", "abstract")) or None,
        landing_page=next((page for page in pages if page not in files), None),
        licence=next(filter(is_web, rights), None),
        rights=next((word for word in rights if not sound_iri(word)), None),
        access_rights=_access(rights),
        creator=_named(said.all("creator")),
        issued=min(
            (date for date in said.all("issued", "date", "available") if date[:4].isdigit()), default=None
        ),
        modified=next(iter(said.all("modified")), None),
        spatial=said.all("spatial", "coverage"),
        temporal=tuple(map(_period, said.all("temporal"))),
        distributions=tuple(_file(url, said.all("format") if len(files) == 1 else ()) for url in files),
        agents=tuple(_roles(said)),
        more=(*_translations(metadata), *(DcatProperty("dct:type", kind) for kind in said.all("type"))),
    )  # fmt: skip


def _dataset(
    said: "_Words",
    header: OaiHeader,
    catalogue: str,
    identifiers: tuple[str, ...],
    pages: list[str],
    **more: Any,
) -> Dataset:
    """Return a dataset of what Dublin Core and DataCite say in the same words, and of `more`."""
    title = said.element("title")
    name = content(title) or next(iter(identifiers), None)
    if name is None:
        raise ValueError("it has neither title nor identifier")
    return Dataset(
        iri=_name(pages, header, catalogue),
        record=header.identifier,
        title=name,
        title_language=None if title is None else title.get(_XML_LANGUAGE),
        identifiers=identifiers,
        keywords=said.all("subject"),
        publisher=_named(said.all("publisher")),
        record_modified=header.datestamp,
        language=said.all("language"),
        **more,
    )


def _roles(said: "_Words") -> Iterator[AgentRole]:
    """Yield all creators but the first, and all contributors."""
    for name in said.all("creator")[1:]:
        yield AgentRole(property="dct:creator", agent=Agent(name=name))
    for name in said.all("contributor"):
        yield AgentRole(property="dct:contributor", agent=Agent(name=name))


def _translations(root: Element) -> Iterator[DcatProperty]:
    """Titles, descriptions and subjects that say their language."""
    for element in root.iter("{*}*"):
        name, language = _TEXTS.get(local(element)), element.get(_XML_LANGUAGE)
        if name and language and not len(element) and (text := content(element)):
            yield DcatProperty(name, text, language)


def _from_datacite(resource: Element, header: OaiHeader, catalogue: str) -> Dataset | None:
    said = _Words(resource)
    kind = inner(resource, "resourceType")
    if kind is not None and _is_no_data((kind.get("resourceTypeGeneral") or content(kind) or "",)):
        return None
    identifiers = (*said.all("identifier"), *said.all("alternateIdentifier"))
    pages = list(filter(None, map(_address, identifiers)))
    dates = {date.get("dateType"): content(date) for date in resource.iter("{*}date")}
    licences = [uri for each in resource.iter("{*}rights") if (uri := each.get("rightsURI"))]
    return _dataset(
        said, header, catalogue, identifiers, pages,
        description="\n\n".join(said.all("description")) or None,
        landing_page=pages[0] if pages else None,
        licence=next(filter(is_web, licences), None),
        rights=next(iter(said.all("rights")), None),
        access_rights=_access((*licences, *said.all("rights"))),
        creator=_creator(inner(resource, "creator")),
        contact=_contact(resource),
        issued=dates.get("Issued") or dates.get("Available") or next(iter(said.all("publicationYear")), None),
        modified=dates.get("Updated"),
        spatial=tuple(_places(resource)),
        temporal=tuple(_period(text) for name in ("Coverage", "Collected") if (text := dates.get(name))),
        version=next(iter(said.all("version")), None),
        agents=tuple(_datacite_roles(resource)),
        more=(
            *_translations(resource),
            *(DcatProperty("adms:identifier", each) for each in said.all("alternateIdentifier")),
            *_related(resource),
        ),
    )  # fmt: skip


def _datacite_roles(resource: Element) -> Iterator[AgentRole]:
    for element in list(resource.iter("{*}creator"))[1:]:
        if agent := _creator(element):
            yield AgentRole(property="dct:creator", agent=agent)
    for element in resource.iter("{*}contributor"):
        name = content(inner(element, "contributorName")) or content(element)
        if name and element.get("contributorType") != "ContactPerson":
            yield AgentRole(property="dct:contributor", agent=Agent(name=name))


def _related(resource: Element) -> Iterator[DcatProperty]:
    for element in resource.iter("{*}relatedIdentifier"):
        if found := content(element):
            yield DcatProperty("dct:relation", _address(found) or found)


class _Words:
    """Elements anywhere in a record by their local names."""

    def __init__(self, root: Element) -> None:
        self._found: dict[str, list[Element]] = {}
        for element in root.iter("{*}*"):
            self._found.setdefault(local(element), []).append(element)

    def element(self, name: str) -> Element | None:
        """Return the first element that has a text."""
        return next((each for each in self._found.get(name, ()) if content(each)), None)

    def all(self, *names: str) -> tuple[str, ...]:
        """Return the texts of the elements of these names, each once."""
        texts = (content(each) for name in names for each in self._found.get(name, ()))
        return tuple(dict.fromkeys(text for text in texts if text))


def _is_no_data(kinds: tuple[str, ...]) -> bool:
    """Return whether no kind of a record is data.

    >>> _is_no_data(("info:eu-repo/semantics/article",)), _is_no_data(("Text", "Dataset")), _is_no_data(())
    (True, False, False)
    """
    names = [kind.rpartition("/")[2] for kind in kinds]
    return any(map(_NO_DATA.search, names)) and not any(map(_DATA.search, names))


def _address(identifier: str) -> str | None:
    """Return the address that an identifier is or stands for.

    >>> _address("doi:10.5281/zenodo.1"), _address("https://example.org/a"), _address("ISSN 1234")
    ('https://doi.org/10.5281/zenodo.1', 'https://example.org/a', None)
    """
    if doi := _DOI.fullmatch(identifier.strip()):
        return f"https://doi.org/{doi[1]}"
    return identifier.strip() if is_web(identifier) else None


def _name(pages: list[str], header: OaiHeader, catalogue: str) -> str:
    """A DOI before any other address, and those before the identifier of the record."""
    doi = next((page for page in pages if page.startswith("https://doi.org/")), None)
    name = doi or next((page for page in pages if not _DATA_FILE.search(page)), header.identifier)
    return name if sound_iri(name) else below(catalogue, header.identifier, "dataset").value


def _access(rights: tuple[str, ...]) -> str | None:
    found = (re.search(r"(?i)\b(open|embargoed|restricted|closed)[ _]?access", right) for right in rights)
    return next((each[1].lower() for each in found if each), None)


def _named(names: tuple[str, ...]) -> Agent | None:
    return Agent(name=names[0]) if names else None


def _creator(creator: Element | None) -> Agent | None:
    if creator is None:
        return None
    name = content(inner(creator, "creatorName")) or content(creator)
    identity = content(inner(creator, "nameIdentifier")) or ""
    orcid = re.search(r"\d{4}-\d{4}-\d{4}-\d{3}[\dX]", identity)
    iri = f"https://orcid.org/{orcid[0]}" if orcid else identity if is_web(identity) else None
    return Agent(name=name, iri=iri) if name else None


def _contact(resource: Element) -> Agent | None:
    for contributor in resource.iter("{*}contributor"):
        name = content(inner(contributor, "contributorName"))
        if name and contributor.get("contributorType") == "ContactPerson":
            return Agent(name=name)
    return None


def _period(text: str) -> Period:
    """A span `START/END`, or a single date.

    >>> _period("2019-01-01/2019-12-31"), _period("2020")
    (Period(start='2019-01-01', end='2019-12-31'), Period(start='2020', end='2020'))
    """
    span = _RANGE.fullmatch(text)
    return Period(span[1] or None, span[2] or None) if span else Period(text.strip(), text.strip())


def _places(resource: Element) -> Iterator[str]:
    for location in resource.iter("{*}geoLocation"):
        shape = _box(inner(location, "geoLocationBox")) or _point(inner(location, "geoLocationPoint"))
        place = content(inner(location, "geoLocationPlace"))
        yield from (found for found in (shape, place) if found)


def _box(box: Element | None) -> str | None:
    """A box as WKT: named sides since version 4, before that `south west north east`."""
    south, west, north, east = _numbers(
        box, "southBoundLatitude", "westBoundLongitude", "northBoundLatitude", "eastBoundLongitude"
    )
    return box_polygon([west, south, east, north])


def _point(point: Element | None) -> str | None:
    latitude, longitude = _numbers(point, "pointLatitude", "pointLongitude")
    return f"POINT({longitude} {latitude})" if is_number(latitude) and is_number(longitude) else None


def _numbers(shape: Element | None, *sides: str) -> list[str]:
    """Return the sides of a shape, named or in one text; empty texts unless there is one for each."""
    found: list[str] = []
    if shape is not None and len(shape):
        found = [content(inner(shape, side)) or "" for side in sides]
    elif shape is not None:
        found = (content(shape) or "").split()
    return found if len(found) == len(sides) else [""] * len(sides)


def mapped_dataset(record: Element, catalogue: str) -> Dataset:
    """Read a stored record as a dataset. Raises `ValueError` for one that is about something else."""
    found = dataset_of(record, header_of(record), catalogue)
    if found is None:
        raise ValueError("it is about something else")
    return found


def _file(url: str, formats: tuple[str, ...]) -> Distribution:
    extension = _DATA_FILE.search(url)
    kind = next((word for word in formats if re.fullmatch(r"[a-z]+/[\w.+-]+", word)), None)
    return Distribution(url=url, media_type=kind, format=extension[1].upper() if extension else None)


def rdf_in(graph: Element, base: str, identifier: str) -> list[Quad]:
    """Return the statements of a record in RDF/XML, and that the repository lists its datasets.

    Its blank nodes have labels of its own. Raises `ValueError` for what is no RDF, or no dataset.
    """
    labels = Labels(f"r{digest(identifier):x}")
    try:
        # No entity and no deep nesting is in what the XML parser let through.
        found = parse(etree.tostring(graph, with_tail=False), format=RdfFormat.RDF_XML, base_iri=base)
        quads = [labels.quad(quad) for quad in found]
    except SyntaxError as error:
        raise ValueError(f"its RDF: {error.msg}") from error
    datasets = datasets_in(Descriptions(quads), base)
    if not datasets:
        raise ValueError("its RDF describes no dcat:Dataset")
    return [Quad(NamedNode(base), _LISTS, NamedNode(each.iri)) for each in datasets] + quads


def _rdf_quads(source: SourceRecord) -> list[Quad]:
    graph = inner(element_of(source), "RDF")
    if graph is None:
        return map_stored_element(MAPPING, source)
    return rdf_in(graph, source.catalogue, source.record)


MAPPING: Final = RecordMapping("oai-pmh", mapped_dataset)
RDF_MAPPING: Final = RecordMapping("oai-rdf", mapped_dataset, quads=_rdf_quads)
