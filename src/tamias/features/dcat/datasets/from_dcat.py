"""DCAT as a catalogue writes it into values: the datasets, and the addresses where their data stand.

Pure functions over quads; every version of DCAT and its profiles, as far as they share their words.
"""

from collections.abc import Callable, Iterable, Iterator

from pyoxigraph import BlankNode, Literal, NamedNode, Quad

from tamias.features.dcat.datasets.descriptions import Descriptions, Node, Term, is_web
from tamias.features.dcat.datasets.terms import (
    ADMS,
    DCAT,
    DCT,
    FOAF,
    RDF,
    RDFS,
    SKOS,
    SPDX,
    VCARD,
    below,
    last_segment,
)
from tamias.model.dataset import Agent, Dataset, DcatProperty, Distribution, Period
from tamias.model.vocabulary import SPACES, sound_iri

SCHEMA = "http://schema.org/"
SECURE = "https://schema.org/"
LOCN = "http://www.w3.org/ns/locn#"
TIME = "http://www.w3.org/2006/time#"
OWL = "http://www.w3.org/2002/07/owl#"
DC = "http://purl.org/dc/elements/1.1/"

_TITLE = (DCT + "title", DC + "title", RDFS + "label", SKOS + "prefLabel", FOAF + "name")
_DESCRIPTION = (DCT + "description", DC + "description", RDFS + "comment")
_LABEL = (*_TITLE, RDF + "value", SKOS + "notation", *_DESCRIPTION)
_NAME = (FOAF + "name", VCARD + "fn", VCARD + "organization-name", SCHEMA + "name", *_TITLE)
_PAGE = (FOAF + "homepage", FOAF + "page", VCARD + "hasURL")
_SPARQL = ("sparql11-protocol", "sparql12-protocol", "sparql-service-description", "/sparql")
_GEOMETRY = (LOCN + "geometry", DCAT + "bbox", DCAT + "centroid")
_MEDIA_TYPES = "//www.iana.org/assignments/media-types/"


def datasets_in(quads: Iterable[Quad] | Descriptions, catalogue: str | None = None) -> list[Dataset]:
    """Return the datasets that quads describe; one without an IRI gets one within `catalogue`.

    One that has neither name nor identifier cannot be told apart, and is left out.
    """
    said = quads if isinstance(quads, Descriptions) else Descriptions(quads)
    return list(datasets_by_node(said, catalogue).values())


def datasets_by_node(said: Descriptions, catalogue: str | None = None) -> dict[Node, Dataset]:
    """Return the datasets by their nodes."""
    listed = (
        value for node in said.saying(DCAT + "dataset") for value in said.values(node, DCAT + "dataset")
    )
    nodes = dict.fromkeys(said.of_type(DCAT + "Dataset"))
    nodes.update((node, None) for node in listed if not isinstance(node, Literal) and said.knows(node))
    records = _records(said)
    found = {node: _dataset(said, node, records.get(node), catalogue) for node in nodes}
    return {node: dataset for node, dataset in found.items() if dataset is not None}


def unread_in(said: Descriptions) -> list[str]:
    """Return the datasets and catalogues that are named here but described elsewhere."""
    predicates = (DCAT + "dataset", DCAT + "catalog", DCT + "hasPart")
    catalogues = [*said.of_type(DCAT + "Catalog"), *said.saying(DCAT + "dataset")]
    named = (value for node in catalogues for value in said.values(node, *predicates))
    elsewhere = (node.value for node in named if isinstance(node, NamedNode) and not said.knows(node))
    return [address for address in dict.fromkeys(elsewhere) if is_web(address)]


def addresses_in(said: Descriptions) -> dict[str, str | None]:
    """Return the URLs of distributions and the endpoints of services, with their kind."""
    urls = (DCAT + "downloadURL", DCAT + "accessURL")
    found: dict[str, str | None] = {}
    for predicate in urls:
        for node in said.saying(predicate):
            found.update((url, None) for url in said.words(node, predicate))
    for service in said.saying(DCAT + "endpointURL"):
        kind = _service_kind(said, service)
        found.update((url, kind) for url in said.words(service, DCAT + "endpointURL"))
    return {url: kind for url, kind in found.items() if is_web(url)}


def _records(said: Descriptions) -> dict[Term, Node]:
    records = said.of_type(DCAT + "CatalogRecord")
    return {topic: record for record in records for topic in said.values(record, FOAF + "primaryTopic")}


def _dataset(said: Descriptions, node: Node, record: Node | None, catalogue: str | None) -> Dataset | None:
    identifiers = said.words(node, DCT + "identifier", ADMS + "identifier", DC + "identifier")
    iri = node.value if isinstance(node, NamedNode) else _own_name(identifiers, catalogue)
    if iri is None:
        return None
    title = said.literal(node, *_TITLE)
    pages = said.iris(node, DCAT + "landingPage", FOAF + "page", FOAF + "homepage")
    subjects = said.values(node, DCAT + "theme", DCT + "subject")
    themes = tuple(value.value for value in subjects if isinstance(value, NamedNode))
    entry: Term = record if record is not None else Literal("")
    return Dataset(
        iri=iri,
        record=iri if isinstance(node, NamedNode) or not identifiers else identifiers[0],
        title=title.value.strip() if title else (identifiers or (iri,))[0],
        title_language=title.language if title else None,
        description=said.text(node, *_DESCRIPTION),
        identifiers=identifiers,
        keywords=_keywords(said, node, subjects),
        themes=themes,
        landing_page=next(filter(is_web, pages), None),
        licence=_word(said, node, DCT + "license"),
        rights=_word(said, node, DCT + "rights"),
        access_rights=_word(said, node, DCT + "accessRights"),
        publisher=_agent(said, node, DCT + "publisher", DC + "publisher"),
        creator=_agent(said, node, DCT + "creator", DC + "creator"),
        contact=_agent(said, node, DCAT + "contactPoint", ADMS + "contactPoint"),
        issued=said.text(node, DCT + "issued"),
        modified=said.text(node, DCT + "modified"),
        record_issued=said.text(entry, DCT + "issued"),
        record_modified=said.text(entry, DCT + "modified"),
        frequency=_word(said, node, DCT + "accrualPeriodicity"),
        language=_words(said, node, DCT + "language", DC + "language"),
        spatial=tuple(_places(said, node)),
        temporal=tuple(_periods(said, node)),
        version=said.text(node, DCAT + "version", OWL + "versionInfo"),
        provenance=_word(said, node, DCT + "provenance"),
        conforms_to=_words(said, node, DCT + "conformsTo"),
        distributions=tuple(_distributions(said, node)),
        more=_laws(said, node),
    )


def _laws(said: Descriptions, node: Node) -> tuple[DcatProperty, ...]:
    """Return which laws apply, and the categories of high-value datasets."""
    names, space = ("applicableLegislation", "hvdCategory"), SPACES["dcatap"]
    return tuple(
        DcatProperty(f"dcatap:{name}", each) for name in names for each in said.iris(node, space + name)
    )


def _own_name(identifiers: tuple[str, ...], catalogue: str | None) -> str | None:
    own = next(filter(is_web, identifiers), None)
    if own is None and identifiers and catalogue is not None:
        return below(catalogue, identifiers[0], "dataset").value
    return own


def _keywords(said: Descriptions, node: Node, subjects: list[Term]) -> tuple[str, ...]:
    words = [value.value.strip() for value in subjects if isinstance(value, Literal)]
    return tuple(dict.fromkeys((*said.texts(node, DCAT + "keyword"), *filter(None, words))))


def _words(said: Descriptions, node: Node, *predicates: str) -> tuple[str, ...]:
    return words_in(said.values(node, *predicates), lambda value: said.text(value, *_LABEL))


def words_in(values: Iterable[Term], label: Callable[[BlankNode], str | None]) -> tuple[str, ...]:
    """Return each value as a text: an IRI or a literal as it stands, a blank node by its label."""
    found = (label(value) if isinstance(value, BlankNode) else value.value.strip() for value in values)
    return tuple(dict.fromkeys(word for word in found if word))


def _word(said: Descriptions, node: Node, predicate: str) -> str | None:
    return next(iter(_words(said, node, predicate)), None)


def _agent(said: Descriptions, node: Node, *predicates: str) -> Agent | None:
    return agent_in(said, said.values(node, *predicates), _NAME, _PAGE)


def agent_in(
    said: Descriptions, agents: list[Term], names: tuple[str, ...], pages: tuple[str, ...]
) -> Agent | None:
    """Return the first agent that is described, which is worth more than a bare name or IRI beside it."""
    agent = next(filter(said.knows, agents), agents[0]) if agents else Literal("")
    iri = agent.value if isinstance(agent, NamedNode) else None
    name = said.text(agent, *names) or (None if isinstance(agent, BlankNode) else agent.value.strip())
    email, homes = _email(said, agent), said.iris(agent, *pages)
    if not name and not email:
        return None
    return Agent(
        name=name or email or "",
        iri=iri,
        email=email,
        homepage=next(filter(is_web, homes), next(iter(homes), None)),
        kind=next(iter(said.iris(agent, DCT + "type")), None),
    )


def _email(said: Descriptions, agent: Term) -> str | None:
    predicates = (VCARD + "hasEmail", VCARD + "email", FOAF + "mbox", SCHEMA + "email", SECURE + "email")
    for value in said.values(agent, *predicates):
        inner = said.words(value, VCARD + "hasValue", VCARD + "value", RDF + "value")
        word = next(iter(inner), None) or (None if isinstance(value, BlankNode) else value.value)
        if word:
            return word.strip().removeprefix("mailto:")
    return None


def _places(said: Descriptions, node: Node) -> Iterator[str]:
    for place in said.values(node, DCT + "spatial", DC + "coverage"):
        if isinstance(place, BlankNode):
            geometries = said.texts(place, *_GEOMETRY)
            label = said.text(place, *_LABEL)
            yield from geometries[:1] or ((label,) if label else ())
        elif place.value.strip():
            yield place.value.strip()


def _periods(said: Descriptions, node: Node) -> Iterator[Period]:
    for period in said.values(node, DCT + "temporal"):
        if isinstance(period, Literal):
            start, _, end = period.value.partition("/")
            yield Period(start.strip() or None, end.strip() or None)
            continue
        found = Period(_end(said, period, "start", "Beginning"), _end(said, period, "end", "End"))
        if found != Period():
            yield found


def _end(said: Descriptions, period: Node, side: str, instant: str) -> str | None:
    for node in said.values(period, TIME + "has" + instant):
        date = said.text(node, TIME + "inXSDDateTimeStamp", TIME + "inXSDDateTime", TIME + "inXSDDate")
        if date:
            return date
    return said.text(period, DCAT + side + "Date", SCHEMA + side + "Date")


def _distributions(said: Descriptions, node: Node) -> Iterator[Distribution]:
    for distribution in said.values(node, DCAT + "distribution", ADMS + "sample"):
        if isinstance(distribution, Literal) or not said.knows(distribution):
            continue
        downloads = [url for url in said.words(distribution, DCAT + "downloadURL") if is_web(url)]
        accesses = [url for url in said.words(distribution, DCAT + "accessURL") if is_web(url)]
        service, kind = _service(said, distribution)
        urls = downloads or accesses or [url for url in (service,) if url]
        for number, url in enumerate(urls):
            yield _distribution(said, distribution, url, not downloads, number == 0, service, kind)


def _distribution(
    said: Descriptions,
    node: Node,
    url: str,
    access_only: bool,
    first: bool,
    service: str | None,
    kind: str | None,
) -> Distribution:
    checksum = _checksum(said, node)
    is_sha256 = checksum is not None and checksum[0].replace("-", "").lower() == "sha256"
    return Distribution(
        url=url,
        iri=node.value if first and isinstance(node, NamedNode) else None,
        access_only=access_only,
        title=said.text(node, *_TITLE),
        description=said.text(node, *_DESCRIPTION),
        media_type=_media_type(_word(said, node, DCAT + "mediaType")),
        format=_format(_word(said, node, DCT + "format")),
        licence=_word(said, node, DCT + "license"),
        rights=_word(said, node, DCT + "rights"),
        byte_size=_size(said.text(node, DCAT + "byteSize")),
        sha256=checksum[1] if checksum and is_sha256 else None,
        checksum=None if is_sha256 else checksum,
        issued=said.text(node, DCT + "issued"),
        modified=said.text(node, DCT + "modified"),
        language=_words(said, node, DCT + "language"),
        conforms_to=_words(said, node, DCT + "conformsTo"),
        service=service,
        service_kind=kind,
        more=_laws(said, node),
    )


def _service(said: Descriptions, distribution: Node) -> tuple[str | None, str | None]:
    for service in said.values(distribution, DCAT + "accessService"):
        url = next(filter(is_web, said.words(service, DCAT + "endpointURL")), None)
        if url and not isinstance(service, Literal):
            return url, _service_kind(said, service)
    return None, None


def _service_kind(said: Descriptions, service: Node) -> str | None:
    standards = said.words(service, DCT + "conformsTo", DCT + "type", DCAT + "endpointDescription")
    texts = [*standards, *said.words(service, DCAT + "endpointURL")]
    return "sparql" if any(sign in word.lower() for word in texts for sign in _SPARQL) else None


def _checksum(said: Descriptions, node: Node) -> tuple[str, str] | None:
    for checksum in said.values(node, SPDX + "checksum"):
        value = said.text(checksum, SPDX + "checksumValue")
        algorithm = next(iter(said.words(checksum, SPDX + "algorithm")), None)
        if value and algorithm:
            return algorithm.rpartition("checksumAlgorithm_")[2].rpartition("#")[2], value
    return None


def _media_type(word: str | None) -> str | None:
    """A media type out of its IRI at IANA, or as it stands.

    >>> _media_type("http://www.iana.org/assignments/media-types/text/csv"), _media_type("text/csv")
    ('text/csv', 'text/csv')
    """
    return word.partition(_MEDIA_TYPES)[2] or word if word else None


def _format(word: str | None) -> str | None:
    """A format's own word out of its IRI, or as it stands.

    >>> _format("http://publications.europa.eu/resource/authority/file-type/CSV"), _format("CSV")
    ('CSV', 'CSV')
    """
    if word and sound_iri(word) and "://" in word:
        return _media_type(word) if _MEDIA_TYPES in word else last_segment(word)
    return word


def _size(text: str | None) -> int | None:
    """A number of bytes, however its literal is typed.

    >>> _size("1024"), _size("1024.0"), _size("about 1 MB"), _size("inf")
    (1024, 1024, None, None)
    """
    try:
        size = int(float(text or ""))
    except (ValueError, OverflowError):
        return None
    return size if size >= 0 else None
