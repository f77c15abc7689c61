"""A dataset as DCAT 3, in the form that DCAT-AP 3.0.1 asks for, all in the default graph.

Nodes without an IRI of their own get one below their record, so that two harvests give the same statements.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final
from urllib.parse import unquote

from pyoxigraph import NamedNode, Quad

from tamias.features.dcat.datasets import authority
from tamias.features.dcat.datasets.location import describe_location, describe_place
from tamias.features.dcat.datasets.terms import (
    DcatStatements,
    below,
    day_or_moment,
    last_segment,
    mailbox,
    text_literal,
)
from tamias.features.dcat.terms import media_type_iri, typed
from tamias.model.dataset import Agent, AgentRole, DataService, Dataset, DcatProperty, Distribution, Period
from tamias.model.url import host
from tamias.model.vocabulary import sound_iri, word

FORMS: Final = {
    name: form
    for form, names in {
        "text": "dct:title dct:description dct:alternative dcat:keyword adms:versionNotes skos:scopeNote",
        "plain": "dct:identifier",
        "date": "dct:modified dct:created",
        "iri": "dcat:inSeries dcat:prev dcat:next dcat:first dcat:last dcat:seriesMember dcat:servesDataset "
        "dcat:dataset dcat:catalog dcat:endpointURL foaf:primaryTopic",
        "iri eli:LegalResource": "dcatap:applicableLegislation",
        "concept": "dct:type dct:subject dcat:theme dcatap:hvdCategory dcatap:availability adms:status",
        "node skos:ConceptScheme": "dcat:themeTaxonomy",
        "node prov:Activity": "prov:wasGeneratedBy",
        "identifier": "adms:identifier",
        "sample": "adms:sample",
        "duration": "dcat:temporalResolution",
        "decimal": "dcat:spatialResolutionInMeters",
        "label dct:ProvenanceStatement provenance": "dct:provenance",
        "label dct:RightsStatement rights": "dct:rights",
        "node foaf:Document": "foaf:page dcat:landingPage",
        "node rdfs:Resource": "dct:isReferencedBy dct:references dct:relation dct:isVersionOf dct:hasVersion "
        "dct:source dct:hasPart "
        "dcat:hasVersion dcat:previousVersion dct:replaces dct:isReplacedBy dct:isPartOf prov:wasDerivedFrom "
        "dcat:endpointDescription",
        "node dct:MediaType": "dcat:compressFormat dcat:packageFormat",
        "node dct:LicenseDocument": "dct:license",
        "node dct:RightsStatement": "dct:accessRights",
        "node dct:Standard": "dct:conformsTo",
        "node dct:LinguisticSystem": "dct:language",
        "node dct:MediaTypeOrExtent": "dct:format",
    }.items()
    for name in names.split()
}
"""The properties of `DcatProperty`, and what their values become."""
ONCE: Final = frozenset(
    {
        "adms:status", "dcat:compressFormat", "dcat:packageFormat", "dcat:spatialResolutionInMeters",
        "dcat:temporalResolution", "dcatap:availability", "dct:accessRights", "dct:license", "dct:modified",
    }
)  # fmt: skip
"""Properties of which DCAT-AP allows one value."""

_KINDS: Final = {
    "dcat:Dataset": ("dcat:dataset", "dcat:Resource", "dcat:Dataset"),
    "dcat:DatasetSeries": ("dcat:dataset", "dcat:Resource", "dcat:Dataset", "dcat:DatasetSeries"),
    "dcat:DataService": ("dcat:service", "dcat:Resource", "dcat:DataService"),
    "dcat:Catalog": ("dcat:catalog", "dcat:Catalog"),
    "dcat:CatalogRecord": ("dcat:record", "dcat:CatalogRecord"),
}
"""How a catalogue lists each kind of what it has, and its classes."""
_NAMED: Final[tuple[tuple[str, str, str, str, Callable[[str], str | None] | None], ...]] = (
    ("licence", "dct:license", "dct:LicenseDocument", "licence", authority.licence_iri),
    ("rights", "dct:rights", "dct:RightsStatement", "rights", None),
    ("access_rights", "dct:accessRights", "dct:RightsStatement", "access", authority.access_iri),
    ("provenance", "dct:provenance", "dct:ProvenanceStatement", "provenance", None),
    ("frequency", "dct:accrualPeriodicity", "dct:Frequency", "frequency", authority.frequency_iri),
    ("language", "dct:language", "dct:LinguisticSystem", "language", authority.language_iri),
    ("conforms_to", "dct:conformsTo", "dct:Standard", "standard", None),
)
"""Fields of a dataset or a distribution that name something: predicate, class, own IRI, authority list."""
_NOTHING = re.compile("(?!)")
_TYPED = {
    "decimal": re.compile(r"[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})"),
    "duration": re.compile(
        r"-?P(?=.)(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=.)(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?"
    ),
}
_DIGEST_SIZES: Final = {"md5": 32, "sha1": 40, "sha224": 56, "sha256": 64, "sha384": 96, "sha512": 128}
_LARGEST_SIZE = 2**63 - 1


def dataset_quads(dataset: Dataset, catalogue: str, holder: str | None = None) -> list[Quad]:
    """Describe a dataset, its distributions, and its record in the catalogue whose IRI is given.

    What is within a catalogue is described with it, and listed by its `holder`.

    DCAT-AP asks for a description: without one, the title stands there again. It asks a record for the date
    of its last change: without one, the record's first date stands there, then the dataset's own; a dataset
    without any date has no record. A date that is none is left out. Nothing is made up.
    """
    graph = DcatStatements(catalogue, dataset.record, dataset.title_language)
    node = sound_iri(dataset.iri) or graph.part("dataset")
    _describe_kind(graph, node, dataset, holder)
    title = dataset.title.strip() or dataset.record
    description = dataset.description if (dataset.description or "").strip() else title
    _describe_texts(graph, node, dataset, title, description)
    for identifier in dict.fromkeys(dataset.identifiers):
        graph.plain(node, "dct:identifier", identifier)
    for keyword in dict.fromkeys(dataset.keywords):
        graph.text(node, "dcat:keyword", _untranslated(keyword, "dcat:keyword", dataset.more))
    graph.plain(node, "dcat:version", dataset.version)
    graph.page(node, "dcat:landingPage", dataset.landing_page)
    _describe_themes(graph, node, dataset)
    _describe_properties(graph, node, dataset.more)
    _describe_relations(graph, node, dataset)
    _describe_named(graph, node, dataset)
    for number, text in enumerate(dict.fromkeys(dataset.spatial), 1):
        describe_location(graph, node, text, graph.part("location", str(number)))
    for number, place in enumerate(dict.fromkeys(dataset.places), 1):
        describe_place(graph, node, place, graph.part("place", str(number)))
    for number, period in enumerate(dict.fromkeys(dataset.temporal), 1):
        _describe_period(graph, node, period, graph.part("period", str(number)))
    _describe_agents(graph, node, dataset)
    _describe_record(graph, node, dataset)
    for number, distribution in enumerate(dataset.distributions, 1):
        _describe_distribution(graph, dataset, node, number, distribution)
    return list(dict.fromkeys(graph.quads))


def catalogue_quads(catalogue: str, title: str, publisher: Agent | None, homepage: str | None) -> list[Quad]:
    """Describe a catalogue; without a publisher it is published by its host.

    DCAT-AP asks for a description: the title stands there again.
    """
    graph = DcatStatements(catalogue, "catalogue")
    node = NamedNode(catalogue)
    graph.add(node, "rdf:type", word("dcat:Catalog"))
    name = title.strip() or host(catalogue) or catalogue
    graph.text(node, "dct:title", name)
    graph.text(node, "dct:description", name)
    graph.page(node, "foaf:homepage", homepage)
    agent = publisher or Agent(name=host(catalogue) or catalogue)
    _describe_agent(graph, node, "dct:publisher", agent, below(catalogue, "publisher"))
    return graph.quads


def _describe_kind(graph: DcatStatements, node: NamedNode, dataset: Dataset, holder: str | None) -> None:
    """Describe the class, who lists it, and what is in it."""
    listed, *kinds = _KINDS[dataset.kind]
    if node.value != graph.catalogue:
        graph.add(NamedNode(holder or graph.catalogue), listed, node)
    for kind in kinds:
        graph.add(node, "rdf:type", word(kind))
    for part in dataset.parts:
        graph.quads += dataset_quads(part, graph.catalogue, node.value)


def _describe_texts(
    graph: DcatStatements,
    node: NamedNode,
    owner: Dataset | Distribution,
    title: str | None,
    description: str | None,
) -> None:
    graph.text(node, "dct:title", _untranslated(title, "dct:title", owner.more))
    graph.text(node, "dct:description", _untranslated(description, "dct:description", owner.more))
    graph.date(node, "dct:issued", owner.issued)
    graph.date(node, "dct:modified", owner.modified)


def _untranslated(text: str | None, name: str, properties: Sequence[DcatProperty]) -> str | None:
    """Return a text, unless it is among those of the same property that have a language."""
    tagged = {each.value.strip() for each in properties if each.name == name and each.language}
    return text if text is None or text.strip() not in tagged else None


def _describe_named(
    graph: DcatStatements, node: NamedNode, owner: Dataset | Distribution, *segments: str
) -> None:
    """Describe what fields name; `segments` name the part of the record that `node` is."""
    for field, predicate, kind, part, iri_of in _NAMED:
        found: Any = getattr(owner, field, None)
        values: list[tuple[str | None, tuple[str, ...]]]
        if isinstance(found, tuple):
            values = [(each, (part, str(number))) for number, each in enumerate(dict.fromkeys(found), 1)]
        else:
            values = [(_untranslated(found, predicate, owner.more), (part,))] if found else []
        for value, own in values:
            iri = iri_of(value) if iri_of and value else None
            graph.named(node, predicate, kind, value, graph.part(*segments, *own), iri)


def _describe_properties(
    graph: DcatStatements, node: NamedNode, properties: Sequence[DcatProperty], *segments: str
) -> None:
    """Describe further properties, each by its form; `segments` name the part of the record that `node` is.

    A value that its form does not allow is left out, and of a property with one value all but the first.
    """
    described: set[str] = set()
    for number, each in enumerate(dict.fromkeys(properties), 1):
        if not each.value.strip() or (each.name in ONCE and each.name in described):
            continue
        before = len(graph.quads)
        part = graph.part(*segments, each.name.partition(":")[2], str(number))
        _describe_property(graph, node, each, part, segments)
        if len(graph.quads) > before:
            described.add(each.name)


def _describe_property(
    graph: DcatStatements, node: NamedNode, each: DcatProperty, part: NamedNode, segments: tuple[str, ...]
) -> None:
    form, *rest = FORMS[each.name].split()
    value: Any = each.value.strip()
    if form == "text":
        graph.add(node, each.name, text_literal(value, each.language or graph.language))
    elif form == "plain":
        graph.plain(node, each.name, value)
    elif form == "date":
        graph.date(node, each.name, value)
    elif form == "label":
        shared = graph.part(*segments, rest[1])
        graph.typed(node, each.name, shared, rest[0])
        graph.add(shared, "rdfs:label", text_literal(value, each.language))
    elif form == "node":
        graph.named(node, each.name, rest[0], value, part, label=each.label)
    elif form == "iri" and (iri := sound_iri(value)):
        graph.typed(node, each.name, iri, rest[0]) if rest else graph.add(node, each.name, iri)
    elif form == "concept":
        graph.concept(node, each.name, part, value, each.label)
    elif form == "identifier":
        graph.typed(node, each.name, part, "adms:Identifier")
        graph.plain(part, "skos:notation", value)
    elif form == "sample" and (address := sound_iri(value, web=True)):
        graph.typed(node, each.name, part, "dcat:Distribution")
        graph.add(part, "dcat:accessURL", address)
    elif _TYPED.get(form, _NOTHING).fullmatch(value):
        graph.add(node, each.name, typed(value, form))


def _describe_themes(graph: DcatStatements, node: NamedNode, dataset: Dataset) -> None:
    """Label a theme with the end of its IRI; a group is a theme of this catalogue."""
    for theme in dict.fromkeys(dataset.themes):
        if iri := sound_iri(theme):
            graph.labelled(node, "dcat:theme", iri, unquote(last_segment(theme)) or theme)
        else:
            graph.text(node, "dcat:keyword", theme)
    for group in dict.fromkeys(dataset.groups):
        if group.strip():
            graph.labelled(node, "dcat:theme", below(graph.catalogue, "theme", group.strip()), group)


def _describe_period(graph: DcatStatements, node: NamedNode, period: Period, part: NamedNode) -> None:
    """Describe the ends that are dates; if one is none, both stand in a label."""
    ends = [text for text in (period.start, period.end) if text and text.strip()]
    if not ends:
        return
    graph.typed(node, "dct:temporal", part, "dct:PeriodOfTime")
    graph.date(part, "dcat:startDate", period.start)
    graph.date(part, "dcat:endDate", period.end)
    if any(day_or_moment(text) is None for text in ends):
        graph.plain(part, "rdfs:label", f"{period.start or ''}/{period.end or ''}")


def _describe_agents(graph: DcatStatements, node: NamedNode, dataset: Dataset) -> None:
    if dataset.publisher:
        _describe_agent(graph, node, "dct:publisher", dataset.publisher, graph.part("publisher"))
    if dataset.creator:
        _describe_agent(graph, node, "dct:creator", dataset.creator, graph.part("creator"))
    if dataset.contact:
        _describe_contact(graph, node, dataset.contact, graph.part("contact"))
    for number, each in enumerate(dict.fromkeys(dataset.agents), 1):
        _describe_role(graph, node, each, str(number))


def _describe_role(graph: DcatStatements, node: NamedNode, each: AgentRole, number: str) -> None:
    if each.property == "dcat:contactPoint":
        _describe_contact(graph, node, each.agent, graph.part("contact", number))
        return
    holder = node
    if is_qualified := each.property == "prov:qualifiedAttribution":
        holder = graph.part("attribution", number)
        graph.typed(node, each.property, holder, "prov:Attribution")
        if role := sound_iri(each.role):
            graph.typed(holder, "dcat:hadRole", role, "dcat:Role")
    predicate = "prov:agent" if is_qualified else each.property
    _describe_agent(graph, holder, predicate, each.agent, graph.part("agent", number))


def _describe_contact(graph: DcatStatements, node: NamedNode, contact: Agent, part: NamedNode) -> None:
    email, page = mailbox(contact.email), sound_iri(contact.homepage, web=True)
    if not (contact.name.strip() or email or page):
        return
    part = sound_iri(contact.iri) or part
    graph.typed(node, "dcat:contactPoint", part, "vcard:Kind")
    _describe_names(graph, part, "vcard:fn", contact, contact.name)
    graph.add(part, "vcard:hasEmail", email)
    graph.add(part, "vcard:hasURL", page)
    graph.plain(part, "vcard:hasUID", contact.identifier)


def _describe_agent(graph: DcatStatements, node: NamedNode, role: str, agent: Agent, part: NamedNode) -> None:
    """Describe an agent by its name, or its IRI or address; one without any of them is left out."""
    name = agent.name.strip() or agent.iri or agent.email or ""
    if not name.strip():
        return
    part = sound_iri(agent.iri) or part
    graph.typed(node, role, part, "foaf:Agent")
    _describe_names(graph, part, "foaf:name", agent, name)
    graph.add(part, "foaf:mbox", mailbox(agent.email))
    graph.page(part, "foaf:homepage", agent.homepage)
    graph.plain(part, "dct:identifier", agent.identifier)
    if agent.kind and agent.kind.strip():
        kind = sound_iri(agent.kind) or NamedNode(part.value + "/type")
        graph.labelled(part, "dct:type", kind, last_segment(agent.kind) or agent.kind)


def _describe_names(graph: DcatStatements, part: NamedNode, predicate: str, agent: Agent, name: str) -> None:
    for language, text in agent.names:
        graph.add(part, predicate, text_literal(text, language))
    if name.strip() not in {text for _, text in agent.names}:
        graph.plain(part, predicate, name)


def _describe_relations(graph: DcatStatements, node: NamedNode, dataset: Dataset) -> None:
    for number, relation in enumerate(dict.fromkeys(dataset.relations), 1):
        if target := sound_iri(relation.target):
            part = graph.part("relation", str(number))
            graph.typed(node, "dcat:qualifiedRelation", part, "dcat:Relationship")
            graph.typed(part, "dct:relation", target, "rdfs:Resource")
            if role := sound_iri(relation.role):
                graph.typed(part, "dcat:hadRole", role, "dcat:Role")


def _describe_record(graph: DcatStatements, node: NamedNode, dataset: Dataset) -> None:
    dates = (dataset.record_modified, dataset.record_issued, dataset.modified, dataset.issued)
    modified = next((date for date in map(day_or_moment, dates) if date), None)
    if modified is None or "dcat:Dataset" not in _KINDS[dataset.kind]:
        return
    record = graph.part()
    graph.typed(NamedNode(graph.catalogue), "dcat:record", record, "dcat:CatalogRecord")
    graph.add(record, "foaf:primaryTopic", node)
    graph.add(record, "dct:modified", modified)
    graph.date(record, "dct:issued", dataset.record_issued)
    graph.plain(record, "dct:identifier", dataset.record)


def _describe_distribution(
    graph: DcatStatements, dataset: Dataset, node: NamedNode, number: int, distribution: Distribution
) -> None:
    """Describe a distribution by its address; without one, by the page of the dataset, or not at all.

    `dcat:downloadURL` is only for an address of the data itself.
    """
    address = sound_iri(distribution.url, web=True)
    others = (distribution.access_url, distribution.url, distribution.service, dataset.landing_page)
    access = next(filter(None, (sound_iri(each, web=True) for each in others)), None)
    if access is None:
        return
    own = ("distribution", str(number))
    part = graph.part(*own)
    it = sound_iri(distribution.iri) or part
    graph.typed(node, "dcat:distribution", it, "dcat:Distribution")
    graph.add(it, "dcat:accessURL", access)
    if address and not distribution.access_only and not distribution.service:
        graph.add(it, "dcat:downloadURL", address)
    _describe_texts(graph, it, distribution, distribution.title, distribution.description)
    _describe_properties(graph, it, distribution.more, *own)
    _describe_form(graph, it, part, distribution)
    _describe_named(graph, it, distribution, *own)
    if not distribution.licence:  # Then it has that of its dataset.
        licence, shared = dataset.licence, graph.part("licence")
        iri = authority.licence_iri(licence)
        graph.named(it, "dct:license", "dct:LicenseDocument", licence, shared, iri)
    if endpoint := sound_iri(distribution.service, web=True):
        service = graph.part("service", str(number))
        _describe_service(graph, it, service, distribution.title or dataset.title, [endpoint])
        graph.add(service, "dcat:servesDataset", node)
        if standard := authority.SERVICE_TYPES.get((distribution.service_kind or "").lower()):
            graph.typed(service, "dct:conformsTo", NamedNode(standard), "dct:Standard")
    for place, each in enumerate(distribution.services, 1):
        _describe_access(graph, it, each, f"{number}-{place}")


def _describe_form(graph: DcatStatements, it: NamedNode, part: NamedNode, distribution: Distribution) -> None:
    """Describe media type, format, size and checksum."""
    kind = authority.media_type(distribution.media_type) or authority.media_type(distribution.format)
    if node := media_type_iri(kind):
        graph.typed(it, "dcat:mediaType", node, "dct:MediaType")
    form = distribution.format or (None if kind else distribution.media_type)
    code = authority.file_type(form) if form else None
    iri = f"{authority.EU}file-type/{code}" if code else None
    graph.named(it, "dct:format", "dct:MediaTypeOrExtent", form, NamedNode(part.value + "/format"), iri)
    size = distribution.byte_size
    if size is not None and 0 <= size <= _LARGEST_SIZE:
        graph.add(it, "dcat:byteSize", typed(size, "nonNegativeInteger"))
    sha256 = distribution.sha256
    name, value = ("sha256", sha256) if sha256 else distribution.checksum or ("", "")
    algorithm, digits = re.sub(r"[^a-z0-9]", "", name.lower()), value.strip().lower()
    if _DIGEST_SIZES.get(algorithm) == len(digits) and re.fullmatch(r"[0-9a-f]+", digits):
        checksum, algorithms = NamedNode(part.value + "/checksum"), "spdx:ChecksumAlgorithm"
        graph.typed(it, "spdx:checksum", checksum, "spdx:Checksum")
        graph.typed(checksum, "spdx:algorithm", word(f"spdx:checksumAlgorithm_{algorithm}"), algorithms)
        graph.add(checksum, "spdx:checksumValue", typed(digits, "hexBinary"))


def _describe_service(
    graph: DcatStatements, it: NamedNode, service: NamedNode, title: str, endpoints: list[NamedNode]
) -> None:
    graph.typed(it, "dcat:accessService", service, "dcat:DataService")
    graph.text(service, "dct:title", title)
    for endpoint in endpoints:
        graph.add(service, "dcat:endpointURL", endpoint)
    graph.add(NamedNode(graph.catalogue), "dcat:service", service)


def _describe_access(graph: DcatStatements, it: NamedNode, service: DataService, number: str) -> None:
    """Describe a service that the portal names beside the distribution, if it has an endpoint."""
    endpoints = [iri for url in service.endpoints if (iri := sound_iri(url, web=True))]
    if not endpoints:
        return
    node = sound_iri(service.iri) or graph.part("service", number)
    _describe_service(graph, it, node, service.title or endpoints[0].value, endpoints)
    for served in service.serves:
        graph.add(node, "dcat:servesDataset", sound_iri(served))
    _describe_properties(graph, node, service.more, "service", number)
