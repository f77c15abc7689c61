"""The catalogue graph out of the database: all of it in batches, or a few resources that have changed.

It has what sitemaps declare as VoID and DCAT, and when portals listed datasets and files, and by which
titles.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

import msgspec
from pyoxigraph import Literal, NamedNode, Quad

from tamias.archive.sources.declared import DeclaredDataset, declared_datasets
from tamias.archive.versions.resources import (
    Suspect,
    page_of_resources,
    read_end_versions,
    read_named_versions,
    read_resources,
    read_versions,
    resource_of,
)
from tamias.database.connect import Session
from tamias.database.sql import statements
from tamias.features.archive.descriptions import earlier_content
from tamias.features.dcat.datasets.authority import frequency_iri
from tamias.features.dcat.joins import JoinCandidate, joins_of
from tamias.features.dcat.measures import describe_measures, metric_quads, read_measures, record_id
from tamias.features.dcat.profiles import stored_profile
from tamias.features.dcat.resource import ResourceDetails, head_quads, resource_quads, version_quads
from tamias.features.dcat.terms import (
    CatalogueBases,
    GraphBuilder,
    Period,
    address,
    catalogue_graph,
    moment,
    text,
)
from tamias.model.item import NEVER
from tamias.model.profile import Profile
from tamias.model.resource import Resource, Version
from tamias.model.url import host
from tamias.model.vocabulary import word


def declared_quads(
    session: Session, only: Collection[str] | None = None, at: int = NEVER
) -> Iterator[list[Quad]]:
    """Yield a graph for each dataset declared until a time; only those of some sitemaps, if named."""
    for each in declared_datasets(session):
        if each.seen_at <= at and (only is None or each.sitemap in only):
            yield _quads(each)


def _quads(declared: DeclaredDataset) -> list[Quad]:
    dataset, name = declared.dataset, f"declared:{declared.key.hex()}"
    builder = GraphBuilder(catalogue_graph("declared", declared.key.hex()))
    node = address(dataset.uri) or catalogue_graph(name)
    builder.are([node], "void:Dataset", "dcat:Dataset")
    frequency = frequency_iri(dataset.changefreq or "")
    builder.each(
        node,
        {
            "dct:title": text(dataset.label),
            "prov:wasDerivedFrom": address(declared.sitemap),
            "prov:generatedAtTime": moment(declared.seen_at),
            "dct:modified": None if dataset.lastmod_ms is None else moment(dataset.lastmod_ms),
            "dct:accrualPeriodicity": NamedNode(frequency) if frequency else None,
        },
    )
    for prefix in dataset.prefixes:
        builder.add(node, "void:uriSpace", Literal(prefix.iri))
    for sample in dataset.samples:
        builder.add(node, "void:exampleResource", address(sample))
    for place in (*dataset.dumps, *dataset.fragments):
        _tell_dump(builder, node, place.url)
    for place in dataset.endpoints:
        _tell_endpoint(builder, node, place.url, dataset.graph_names)
    return builder.quads


def _tell_dump(builder: GraphBuilder, node: NamedNode, url: str) -> None:
    place = address(url)
    if place is None:
        return
    builder.add(node, "void:dataDump", place)
    form = NamedNode(f"{place.value}#distribution")
    builder.typed(node, "dcat:distribution", form, "dcat:Distribution")
    builder.each(form, {"dcat:downloadURL": place, "dcat:accessURL": place})


def _tell_endpoint(builder: GraphBuilder, node: NamedNode, url: str, graphs: tuple[str, ...]) -> None:
    place = address(url)
    if place is None:
        return
    builder.add(node, "void:sparqlEndpoint", place)
    form, service = NamedNode(f"{place.value}#distribution"), NamedNode(f"{place.value}#service")
    builder.typed(node, "dcat:distribution", form, "dcat:Distribution")
    builder.add(form, "dcat:accessURL", place)
    builder.typed(form, "dcat:accessService", service, "dcat:DataService")
    builder.each(service, {"dcat:endpointURL": place, "dcat:servesDataset": node})
    for graph in graphs:
        builder.add(service, "sd:namedGraph", address(graph))


def known_periods(periods: Iterable[Period], at: int) -> list[Period]:
    """Return the periods that had begun at a time; one that ended later had no end then.

    >>> known_periods([(1, 3), (5, 9), (12, None)], 6)
    [(1, 3), (5, None)]
    """
    return [(start, end if end is not None and end <= at else None) for start, end in periods if start <= at]


def overlaps(some: Sequence[Period], others: Sequence[Period]) -> list[Period]:
    """Return the times at which both were.

    >>> overlaps([(1, None)], [(1, 3), (5, 9), (12, None)]), overlaps([(1, 3), (6, 7)], [(2, 8)])
    ([(1, 3), (5, 9), (12, None)], [(2, 3), (6, 7)])
    """
    found: list[Period] = []
    for start, end in some:
        for from_, until in others:
            ends = [each for each in (end, until) if each is not None]
            first, last = max(start, from_), min(ends, default=None)
            if last is None or first < last:
                found.append((first, last))
    return found


Listed = tuple[str, list[Period]]
"""A file by its URL, or the dataset as a whole by an empty text, and when it was listed, oldest first."""
Titled = tuple[str, Period]
"""A title, and from one harvest until another when it was given."""


def read_listings(
    session: Session, portal: int, records: Sequence[str], at: int = NEVER
) -> dict[str, list[Listed]]:
    """Return when datasets of a portal and their files were listed, as known at a time."""
    found: dict[str, list[Listed]] = defaultdict(list)
    for record, url, first_seen, gone_at, gone, back in session.fetch_all(
        _SQL["read_listings"], {"portal": portal, "record": list(records)}
    ):
        if periods := known_periods(zip((first_seen, *back), (*gone, gone_at), strict=True), at):
            found[record].append((url, periods))
    return found


def read_titles(
    session: Session, portal: int, records: Sequence[str], at: int = NEVER
) -> dict[str, list[Titled]]:
    """Return the titles of datasets of a portal, oldest first, as known at a time."""
    found: dict[str, list[Titled]] = defaultdict(list)
    params = {"portal": portal, "record": list(records)}
    for record, title, start, end in session.fetch_all(_SQL["read_titles"], params):
        found[record] += [(title, period) for period in known_periods([(start, end)], at)]
    return found


def describe_titles(
    builder: GraphBuilder, dataset: NamedNode, portal: NamedNode, scope: str, titles: Sequence[Titled]
) -> None:
    """A dct:PeriodOfTime for each title."""
    for number, (title, period) in enumerate(titles):
        said = {"arc:hasPortal": portal, "dct:title": text(title)}
        builder.period(dataset, "arc:titled", f"{scope}:titled:{number}", period, said)


def describe_listings(
    builder: GraphBuilder, dataset: NamedNode, portal: NamedNode, scope: str, listings: Sequence[Listed]
) -> None:
    """A dct:PeriodOfTime for each time; `scope` is what their names begin with."""
    whole = [period for url, periods in listings if not url for period in periods]
    for place, (url, listed) in enumerate(listings):
        node = address(url) if url else dataset
        if node is None:
            continue
        # A file is listed while its dataset is.
        periods = overlaps(listed, whole) if url else listed
        said = {"arc:hasPortal": portal, "dct:isPartOf": dataset if url else None}
        for number, period in enumerate(periods):
            builder.period(node, "arc:listed", f"{scope}:listed:{place}:{number}", period, said)


_SQL = statements("tamias.features.dcat", "catalogue.sql")
AT_ONCE: Final = 200
"""Resources or descriptions in one batch."""


def catalogue_quads(session: Session, bases: CatalogueBases, at: int = NEVER) -> Iterator[list[Quad]]:
    """The whole catalogue graph in batches, each of whole named graphs; two runs give the same quads.

    With a time in milliseconds, what was known then; values that have changed since and of which only the
    present one is stored are left out. Where nothing is described there are none, not even of the archive
    itself.
    """
    described = chain(
        quads_of_portals(session, at=at), declared_quads(session, at=at), _resources(session, bases, at)
    )
    first = next(described, None)
    if first is not None:
        yield archive_quads(bases)
        yield first
        yield from described


def _resources(session: Session, bases: CatalogueBases, at: int) -> Iterator[list[Quad]]:
    after = ""
    while page := _page_of_resources(session, after, at):
        yield [quad for quads in _graphs(session, page, bases, at).values() for quad in quads]
        after = page[-1].id


def _page_of_resources(session: Session, after: str, at: int) -> list[Resource]:
    if at == NEVER:
        return page_of_resources(session, after, AT_ONCE)
    rows = session.fetch_all(_SQL["page_resources_at"], {"after": after, "limit": AT_ONCE, "at": at})
    return [resource_of(row[:-1], row[-1]) for row in rows]


def quads_of_resources(
    session: Session, resources: Sequence[str], bases: CatalogueBases
) -> dict[str, list[Quad]]:
    """The graphs of some resources with those of all their versions, by the ids of the resources."""
    found = _graphs(session, read_resources(session, resources), bases)
    return {resource: found.get(resource, []) for resource in resources}


def quads_of_heads(
    session: Session, resources: Sequence[str], bases: CatalogueBases
) -> dict[str, list[Quad]]:
    """The graphs of some resources without their versions; one that is not known has an empty one."""
    known = read_resources(session, resources)
    names = [resource.id for resource in known]
    ends = read_end_versions(session, names)
    details = _read_details(session, names)
    found = {
        resource.id: head_quads(resource, ends[resource.id], details[resource.id], bases)
        for resource in known
    }
    return {resource: found.get(resource, []) for resource in resources}


def quads_of_versions(
    session: Session, versions: Sequence[str], bases: CatalogueBases
) -> dict[str, list[Quad]]:
    """The graphs of some versions by their ids; one that is not known has an empty one."""
    known = read_named_versions(session, versions)
    resources = {
        each.id: each for each in read_resources(session, [version.resource for version, _ in known])
    }
    profiles = _read_profiles(session, {version.sha256 for version, _ in known})
    same = earlier_content(session, [version for version, _ in known])
    found = {
        version.id: version_quads(
            resources[version.resource],
            version,
            before,
            bases=bases,
            profile=profiles.get(version.sha256),
            same=same.get(version.id),
        )
        for version, before in known
        if version.resource in resources
    }
    return {version: found.get(version, []) for version in versions}


def archive_quads(bases: CatalogueBases) -> list[Quad]:
    """Return the archive itself, and the metrics of quality: the graph `urn:tamias:catalogue`."""
    builder = GraphBuilder(catalogue_graph())
    node = bases.catalogue()
    publisher = NamedNode(node.value + "#publisher")
    builder.are([node], "dcat:Catalog")
    builder.each(node, {"dct:title": text(bases.title), "dct:description": text(bases.title)})
    builder.typed(node, "dct:publisher", publisher, "foaf:Agent")
    builder.add(publisher, "foaf:name", text(bases.publisher))
    return builder.quads + metric_quads()


def _graphs(
    session: Session, resources: Sequence[Resource], bases: CatalogueBases, at: int = NEVER
) -> dict[str, list[Quad]]:
    names = [resource.id for resource in resources]
    versions = {
        name: [version for version in known if version.captured_at <= at]
        for name, known in read_versions(session, names).items()
    }
    details = _read_details(session, names, at)
    profiles = _read_profiles(session, {each.sha256 for listed in versions.values() for each in listed})
    same = earlier_content(session, [each for listed in versions.values() for each in listed])
    found = {
        resource.id: resource_quads(
            _with_type(resource, versions[resource.id], at),
            versions[resource.id],
            bases=bases,
            details=details[resource.id],
            profiles=profiles,
            same=same,
        )
        for resource in resources
    }
    if at != NEVER:
        for resource in resources:
            if resource.state == "stopped":  # nobody noted when
                found[resource.id] = [q for q in found[resource.id] if q.predicate != word("arc:state")]
    return found


def _with_type(resource: Resource, versions: Sequence[Version], at: int) -> Resource:
    """Return a resource with the type of the version that was current at a time."""
    if at == NEVER or not versions:
        return resource
    return msgspec.structs.replace(resource, media_type=versions[-1].media_type)


def _read_details(session: Session, resources: Sequence[str], at: int = NEVER) -> dict[str, ResourceDetails]:
    suspects: dict[str, list[Suspect]] = defaultdict(list)
    for resource, *row in session.fetch_all(_SQL["read_suspects"], {"resource": list(resources), "at": at}):
        suspects[resource].append(Suspect(*row))
    gone: dict[str, list[Period]] = defaultdict(list)
    for resource, gone_at, back_at in session.fetch_all(_SQL["read_gone"], {"resource": list(resources)}):
        gone[resource] += known_periods([(gone_at, back_at)], at)
    measures = read_measures(session, resources, at)
    joins = _read_joins(session, resources, at)
    return {
        name: ResourceDetails(suspects[name], gone[name], measures[name], joins[name]) for name in resources
    }


def _read_joins(session: Session, resources: Sequence[str], at: int) -> dict[str, list[JoinCandidate]]:
    """Return the join candidates of versions that were there at a time."""
    joins = joins_of(session, resources)
    if at == NEVER:
        return joins
    sides = {(side.resource, side.version) for each in joins.values() for join in each for side in join.sides}
    known = read_named_versions(session, [f"{resource}_{number}" for resource, number in sorted(sides)])
    there = {(each.resource, each.number) for each, _ in known if each.captured_at <= at}
    return defaultdict(list) | {
        name: [join for join in each if all((side.resource, side.version) in there for side in join.sides)]
        for name, each in joins.items()
    }


def _read_profiles(session: Session, digests: set[str]) -> dict[str, Profile]:
    rows = session.fetch_all(_SQL["read_profiles"], {"sha256": [bytes.fromhex(digest) for digest in digests]})
    return {digest: stored_profile(profile, packed) for digest, profile, packed in rows}


def quads_of_portals(
    session: Session, only: Collection[str] | None = None, at: int = NEVER
) -> Iterator[list[Quad]]:
    """Yield portals and the quality of what they describe: a graph for each portal and each description."""
    for portal, url, first_seen, walked_at in session.fetch_all(_SQL["portals"]):
        node = address(url)
        if node is None or first_seen > at or (only is not None and url not in only):
            continue
        builder = GraphBuilder(catalogue_graph("portal", str(portal)))
        builder.each(
            node,
            {
                "rdfs:label": text(host(url) or url),
                "arc:firstSeen": moment(first_seen),
                "arc:walkedAt": moment(walked_at) if walked_at is not None and walked_at <= at else None,
            },
        )
        describe_measures(builder, node, read_measures(session, [url], at)[url])
        yield builder.quads
        yield from _descriptions(session, portal, url, node, at)


def _descriptions(session: Session, portal: int, url: str, node: NamedNode, at: int) -> Iterator[list[Quad]]:
    after = ""
    while page := session.fetch_all(
        _SQL["page_described"], {"portal": portal, "after": after, "limit": AT_ONCE, "at": at}
    ):
        records = [record for record, _ in page]
        measures = read_measures(session, [record_id(url, record) for record in records], at)
        listings = read_listings(session, portal, records, at)
        titles = read_titles(session, portal, records, at)
        quads: list[Quad] = []
        for record, iri in page:
            name, dataset = record_id(url, record), address(iri)
            graph = catalogue_graph("record", name)
            builder = GraphBuilder(graph)
            if dataset is not None:
                describe_measures(builder, dataset, measures[name], scope=name)
                describe_listings(builder, dataset, node, graph.value, listings[record])
                describe_titles(builder, dataset, node, graph.value, titles[record])
            quads += builder.quads
        yield quads
        after = page[-1][0]
