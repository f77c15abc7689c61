"""A dataset as DCAT 3, in the form that DCAT-AP 3.0.1 asks for, all in the default graph.

What has no IRI of its own gets one below its record, so that two harvests say the same.
"""

from urllib.parse import unquote

from pyoxigraph import NamedNode, Quad

from tamias.harvesters.kit import authority
from tamias.harvesters.kit.distribution import describe_distribution, describe_properties, untranslated
from tamias.harvesters.kit.location import describe_location, describe_place
from tamias.harvesters.kit.terms import (
    DcatStatements,
    below,
    day_or_moment,
    last_segment,
    mailbox,
    sound_iri,
    text_literal,
    word,
)
from tamias.model.dataset import Agent, AgentRole, Dataset, Period
from tamias.model.url import host


def dataset_quads(dataset: Dataset, catalogue: str) -> list[Quad]:
    """The dataset, its distributions, and its record in the catalogue whose IRI is given.

    DCAT-AP asks for a description: without one, the title stands there again. It asks a record for the date
    of its last change: without one, the record's first date stands there, then the dataset's own; a dataset
    without any date has no record. A date that is none is left out. Nothing is made up.
    """
    told = DcatStatements(catalogue, dataset.record, dataset.title_language)
    node = sound_iri(dataset.iri) or told.part("dataset")
    told.add(NamedNode(catalogue), "dcat:dataset", node)
    told.add(node, "rdf:type", word("dcat:Resource"))
    told.add(node, "rdf:type", word("dcat:Dataset"))
    if dataset.is_series:
        told.add(node, "rdf:type", word("dcat:DatasetSeries"))
    _describe_texts(told, node, dataset)
    describe_properties(told, node, dataset.more)
    _describe_relations(told, node, dataset)
    _describe_terms(told, node, dataset)
    _describe_coverage(told, node, dataset)
    _describe_agents(told, node, dataset)
    _describe_record(told, node, dataset)
    for number, distribution in enumerate(dataset.distributions, 1):
        describe_distribution(told, dataset, node, number, distribution)
    return list(dict.fromkeys(told.quads))


def catalogue_quads(catalogue: str, title: str, publisher: Agent | None, homepage: str | None) -> list[Quad]:
    """The catalogue itself. Without a publisher it is whoever is at that host, and named after it.

    DCAT-AP asks for a description: the title stands there again.
    """
    told = DcatStatements(catalogue, "catalogue")
    node = NamedNode(catalogue)
    told.add(node, "rdf:type", word("dcat:Catalog"))
    name = title.strip() or host(catalogue) or catalogue
    told.text(node, "dct:title", name)
    told.text(node, "dct:description", name)
    told.page(node, "foaf:homepage", homepage)
    agent = publisher or Agent(name=host(catalogue) or catalogue)
    describe_agent(told, node, "dct:publisher", agent, below(catalogue, "publisher"))
    return told.quads


def _describe_texts(told: DcatStatements, node: NamedNode, dataset: Dataset) -> None:
    title = dataset.title.strip() or dataset.record
    description = dataset.description if _said(dataset.description) else title
    told.text(node, "dct:title", untranslated(title, "dct:title", dataset.more))
    told.text(node, "dct:description", untranslated(description, "dct:description", dataset.more))
    for identifier in dict.fromkeys(dataset.identifiers):
        told.plain(node, "dct:identifier", identifier)
    for keyword in dict.fromkeys(dataset.keywords):
        told.text(node, "dcat:keyword", untranslated(keyword, "dcat:keyword", dataset.more))
    told.plain(node, "dcat:version", dataset.version)
    told.date(node, "dct:issued", dataset.issued)
    told.date(node, "dct:modified", dataset.modified)
    told.page(node, "dcat:landingPage", dataset.landing_page)
    _describe_themes(told, node, dataset)


def _describe_themes(told: DcatStatements, node: NamedNode, dataset: Dataset) -> None:
    """A theme is labelled with the end of its IRI; a group is a theme of this catalogue."""
    for theme in dict.fromkeys(dataset.themes):
        if iri := sound_iri(theme):
            label = unquote(last_segment(theme)) or theme
            told.concept(node, "dcat:theme", iri, label)
        else:
            told.text(node, "dcat:keyword", theme)
    for group in dict.fromkeys(dataset.groups):
        if _said(group):
            told.concept(node, "dcat:theme", below(told.catalogue, "theme", group.strip()), group)


def _describe_terms(told: DcatStatements, node: NamedNode, dataset: Dataset) -> None:
    licence = authority.licence_iri(dataset.licence)
    told.named(node, "dct:license", "dct:LicenseDocument", dataset.licence, told.part("licence"), licence)
    rights = untranslated(dataset.rights, "dct:rights", dataset.more)
    told.named(node, "dct:rights", "dct:RightsStatement", rights, told.part("rights"))
    access = authority.access_iri(dataset.access_rights or "")
    told.named(
        node, "dct:accessRights", "dct:RightsStatement", dataset.access_rights, told.part("access"), access
    )
    provenance = untranslated(dataset.provenance, "dct:provenance", dataset.more)
    told.named(node, "dct:provenance", "dct:ProvenanceStatement", provenance, told.part("provenance"))
    told.standards(node, dataset.conforms_to)


def _describe_coverage(told: DcatStatements, node: NamedNode, dataset: Dataset) -> None:
    for number, tag in enumerate(dict.fromkeys(dataset.language), 1):
        part = told.part("language", str(number))
        told.named(node, "dct:language", "dct:LinguisticSystem", tag, part, authority.language_iri(tag))
    frequency = authority.frequency_iri(dataset.frequency or "")
    told.named(
        node, "dct:accrualPeriodicity", "dct:Frequency", dataset.frequency, told.part("frequency"), frequency
    )
    for number, text in enumerate(dict.fromkeys(dataset.spatial), 1):
        describe_location(told, node, text, told.part("location", str(number)))
    for number, place in enumerate(dict.fromkeys(dataset.places), 1):
        describe_place(told, node, place, told.part("place", str(number)))
    for number, period in enumerate(dict.fromkeys(dataset.temporal), 1):
        _describe_period(told, node, period, told.part("period", str(number)))


def _describe_period(told: DcatStatements, node: NamedNode, period: Period, part: NamedNode) -> None:
    """The ends that are dates; what is none is kept in words."""
    said = [text for text in (period.start, period.end) if _said(text)]
    if not said:
        return
    told.typed(node, "dct:temporal", part, "dct:PeriodOfTime")
    told.date(part, "dcat:startDate", period.start)
    told.date(part, "dcat:endDate", period.end)
    if any(day_or_moment(text) is None for text in said):
        told.plain(part, "rdfs:label", f"{period.start or ''}/{period.end or ''}")


def _describe_agents(told: DcatStatements, node: NamedNode, dataset: Dataset) -> None:
    if dataset.publisher:
        describe_agent(told, node, "dct:publisher", dataset.publisher, told.part("publisher"))
    if dataset.creator:
        describe_agent(told, node, "dct:creator", dataset.creator, told.part("creator"))
    if dataset.contact:
        _describe_contact(told, node, dataset.contact, told.part("contact"))
    for number, each in enumerate(dict.fromkeys(dataset.agents), 1):
        _describe_role(told, node, each, str(number))


def _describe_role(told: DcatStatements, node: NamedNode, each: AgentRole, number: str) -> None:
    if each.property == "dcat:contactPoint":
        _describe_contact(told, node, each.agent, told.part("contact", number))
    elif each.property == "prov:qualifiedAttribution":
        part = told.part("attribution", number)
        told.typed(node, each.property, part, "prov:Attribution")
        describe_agent(told, part, "prov:agent", each.agent, told.part("agent", number))
        if role := sound_iri(each.role):
            told.typed(part, "dcat:hadRole", role, "dcat:Role")
    else:
        describe_agent(told, node, each.property, each.agent, told.part("agent", number))


def _describe_contact(told: DcatStatements, node: NamedNode, contact: Agent, part: NamedNode) -> None:
    email, page = mailbox(contact.email), sound_iri(contact.homepage, web=True)
    if not (_said(contact.name) or email or page):
        return
    part = sound_iri(contact.iri) or part
    told.typed(node, "dcat:contactPoint", part, "vcard:Kind")
    _describe_names(told, part, "vcard:fn", contact, contact.name)
    told.add(part, "vcard:hasEmail", email)
    told.add(part, "vcard:hasURL", page)
    told.plain(part, "vcard:hasUID", contact.identifier)


def describe_agent(told: DcatStatements, node: NamedNode, role: str, agent: Agent, part: NamedNode) -> None:
    """An agent must have a name: without one it is left out, unless it has an IRI or an address to go by."""
    name = agent.name.strip() or agent.iri or agent.email or ""
    if not name.strip():
        return
    part = sound_iri(agent.iri) or part
    told.typed(node, role, part, "foaf:Agent")
    _describe_names(told, part, "foaf:name", agent, name)
    told.add(part, "foaf:mbox", mailbox(agent.email))
    told.page(part, "foaf:homepage", agent.homepage)
    told.plain(part, "dct:identifier", agent.identifier)
    if agent.kind and agent.kind.strip():
        kind = sound_iri(agent.kind)
        told.concept(
            part, "dct:type", kind or NamedNode(part.value + "/type"), last_segment(agent.kind) or agent.kind
        )


def _describe_names(told: DcatStatements, part: NamedNode, predicate: str, agent: Agent, name: str) -> None:
    for language, text in agent.names:
        told.add(part, predicate, text_literal(text, language))
    if name.strip() not in {text for _, text in agent.names}:
        told.plain(part, predicate, name)


def _describe_relations(told: DcatStatements, node: NamedNode, dataset: Dataset) -> None:
    for number, relation in enumerate(dict.fromkeys(dataset.relations), 1):
        if target := sound_iri(relation.target):
            part = told.part("relation", str(number))
            told.typed(node, "dcat:qualifiedRelation", part, "dcat:Relationship")
            told.typed(part, "dct:relation", target, "rdfs:Resource")
            if role := sound_iri(relation.role):
                told.typed(part, "dcat:hadRole", role, "dcat:Role")


def _describe_record(told: DcatStatements, node: NamedNode, dataset: Dataset) -> None:
    dates = (dataset.record_modified, dataset.record_issued, dataset.modified, dataset.issued)
    modified = next((date for date in map(day_or_moment, dates) if date), None)
    if modified is None:
        return
    record = told.part()
    told.add(NamedNode(told.catalogue), "dcat:record", record)
    told.add(record, "rdf:type", word("dcat:CatalogRecord"))
    told.add(record, "foaf:primaryTopic", node)
    told.add(record, "dct:modified", modified)
    told.date(record, "dct:issued", dataset.record_issued)
    told.plain(record, "dct:identifier", dataset.record)


def _said(text: str | None) -> bool:
    return bool(text and text.strip())
