"""The catalogue graph out of the database: all of it in batches, or a few resources that have changed."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import Final

from pyoxigraph import NamedNode, Quad

from tamias.archive.catalogue.declared import declared_quads
from tamias.archive.catalogue.joins import joins_of
from tamias.archive.catalogue.listed import (
    ListedTimes,
    TitleTime,
    describe_listings,
    describe_titles,
    read_listings,
    read_titles,
)
from tamias.archive.catalogue.measures import describe_measures, metric_quads
from tamias.archive.catalogue.profiles import stored_profile
from tamias.archive.catalogue.resource import head_quads, resource_quads, version_quads
from tamias.archive.catalogue.terms import (
    CatalogueBases,
    GraphBuilder,
    address,
    catalogue_graph,
    moment,
    text,
)
from tamias.archive.quality import Measure, read_measures, record_id
from tamias.archive.versions.resources import (
    Suspect,
    page_of_resources,
    read_end_versions,
    read_named_versions,
    read_resources,
    read_versions,
)
from tamias.archive.versions.same_content import earlier_content
from tamias.database.connect import Session
from tamias.database.sql import statements
from tamias.model.profile import Profile
from tamias.model.resource import Resource
from tamias.model.url import host

_SQL = statements("tamias.archive.catalogue", "catalogue.sql")
AT_ONCE: Final = 200
"""Resources or descriptions in one batch."""


def catalogue_quads(session: Session, bases: CatalogueBases) -> Iterator[list[Quad]]:
    """The whole catalogue graph in batches, each of whole named graphs; two runs give the same quads.

    Where nothing is described there are none, not even of the archive itself.
    """
    described = chain(_portals(session), declared_quads(session), _resources(session, bases))
    first = next(described, None)
    if first is not None:
        yield archive_quads(bases)
        yield first
        yield from described


def archive_quads(bases: CatalogueBases) -> list[Quad]:
    """The archive itself, and the metrics of quality: the graph `urn:tamias:catalogue`."""
    return _whole(bases) + metric_quads()


def _resources(session: Session, bases: CatalogueBases) -> Iterator[list[Quad]]:
    after = ""
    while page := page_of_resources(session, after, AT_ONCE):
        yield [quad for quads in _graphs(session, page, bases).values() for quad in quads]
        after = page[-1].id


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
    suspects = _read_suspects(session, names)
    gone = _read_gone(session, names)
    measures = read_measures(session, names)
    joins = joins_of(session, names)
    found = {
        resource.id: head_quads(
            resource,
            ends[resource.id],
            bases=bases,
            suspects=suspects[resource.id],
            gone=gone[resource.id],
            measures=measures[resource.id],
            joins=joins[resource.id],
        )
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


def quads_of_portals(session: Session, urls: Collection[str]) -> Iterator[list[Quad]]:
    """The graphs of some portals and of their descriptions, in batches of whole named graphs."""
    return _portals(session, urls)


def quads_of_declared(session: Session, sitemaps: Collection[str]) -> Iterator[list[Quad]]:
    """The graphs of the datasets that some sitemaps declare."""
    return declared_quads(session, sitemaps)


def _whole(bases: CatalogueBases) -> list[Quad]:
    """The archive itself."""
    told = GraphBuilder(catalogue_graph())
    node = bases.catalogue()
    publisher = NamedNode(node.value + "#publisher")
    told.are([node], "dcat:Catalog")
    told.each(node, {"dct:title": text(bases.title), "dct:description": text(bases.title)})
    told.typed(node, "dct:publisher", publisher, "foaf:Agent")
    told.add(publisher, "foaf:name", text(bases.publisher))
    return told.quads


def _graphs(session: Session, resources: Sequence[Resource], bases: CatalogueBases) -> dict[str, list[Quad]]:
    names = [resource.id for resource in resources]
    versions = read_versions(session, names)
    suspects = _read_suspects(session, names)
    gone = _read_gone(session, names)
    measures = read_measures(session, names)
    joins = joins_of(session, names)
    profiles = _read_profiles(session, {each.sha256 for listed in versions.values() for each in listed})
    same = earlier_content(session, [each for listed in versions.values() for each in listed])
    return {
        resource.id: resource_quads(
            resource,
            versions[resource.id],
            bases=bases,
            suspects=suspects[resource.id],
            gone=gone[resource.id],
            measures=measures[resource.id],
            profiles=profiles,
            same=same,
            joins=joins[resource.id],
        )
        for resource in resources
    }


def _read_suspects(session: Session, resources: Sequence[str]) -> dict[str, list[Suspect]]:
    found: dict[str, list[Suspect]] = defaultdict(list)
    for resource, *row in session.fetch_all(_SQL["read_suspects"], {"resource": list(resources)}):
        found[resource].append(Suspect(*row))
    return found


def _read_gone(session: Session, resources: Sequence[str]) -> dict[str, list[tuple[int, int | None]]]:
    found: dict[str, list[tuple[int, int | None]]] = defaultdict(list)
    for resource, gone_at, back_at in session.fetch_all(_SQL["read_gone"], {"resource": list(resources)}):
        found[resource].append((gone_at, back_at))
    return found


def _read_profiles(session: Session, digests: set[str]) -> dict[str, Profile]:
    rows = session.fetch_all(_SQL["read_profiles"], {"sha256": [bytes.fromhex(digest) for digest in digests]})
    return {digest: stored_profile(profile, packed) for digest, profile, packed in rows}


def _portals(session: Session, only: Collection[str] | None = None) -> Iterator[list[Quad]]:
    """Portals and the quality of what they describe: one graph for each portal and each description."""
    for portal, url, first_seen, walked_at in session.fetch_all(_SQL["portals"]):
        node = address(url)
        if node is None or (only is not None and url not in only):
            continue
        told = GraphBuilder(catalogue_graph("portal", str(portal)))
        told.each(
            node,
            {
                "rdfs:label": text(host(url) or url),
                "arc:firstSeen": moment(first_seen),
                "arc:walkedAt": moment(walked_at) if walked_at is not None else None,
            },
        )
        describe_measures(told, node, read_measures(session, [url])[url])
        yield told.quads
        yield from _descriptions(session, portal, url, node)


def _descriptions(session: Session, portal: int, url: str, node: NamedNode) -> Iterator[list[Quad]]:
    after = ""
    while page := session.fetch_all(
        _SQL["page_described"], {"portal": portal, "after": after, "limit": AT_ONCE}
    ):
        measures = read_measures(session, [record_id(url, record) for record, _ in page])
        records = [record for record, _ in page]
        listings, titles = read_listings(session, portal, records), read_titles(session, portal, records)
        yield [
            quad
            for record, iri in page
            for name in [record_id(url, record)]
            for quad in _description(name, iri, measures[name], node, listings[record], titles[record])
        ]
        after = page[-1][0]


def _description(
    name: str,
    iri: str,
    measures: Sequence[Measure],
    portal: NamedNode,
    listings: Sequence[ListedTimes],
    titles: Sequence[TitleTime],
) -> list[Quad]:
    graph = catalogue_graph("record", name)
    told = GraphBuilder(graph)
    node = address(iri)
    if node is not None:
        describe_measures(told, node, measures, scope=name)
        describe_listings(told, node, portal, graph.value, listings)
        describe_titles(told, node, portal, graph.value, titles)
    return told.quads
