"""Statements of the catalogue on a dataset, a version, or a page of datasets."""

from collections.abc import Sequence
from typing import Any, Final

from pyoxigraph import NamedNode, Quad

from tamias.archive.reader.library import NotArchived
from tamias.archive.tombstones import check_forgotten
from tamias.archive.versions.resources import read_resources, read_versions
from tamias.database.connect import Session
from tamias.database.sql import statements
from tamias.features.dcat.resource import resource_quads
from tamias.features.dcat.stream import archive_quads, quads_of_resources
from tamias.features.dcat.terms import CatalogueBases, GraphBuilder, catalogue_graph, moment, text, word
from tamias.model.resource import Resource, Version

SQL = statements("tamias.features.published", "published.sql")
_TYPE: Final = word("rdf:type")
MOST_VERSIONS: Final = 1000
"""That a dataset's graph describes, the newest; its TimeMap names all."""


def dataset_graph(session: Session, resource: Resource, bases: CatalogueBases) -> list[Quad]:
    """Return the statements on a resource and its newest versions."""
    quads = quads_of_resources(session, [resource.id], bases)[resource.id]
    oldest = resource.versions - MOST_VERSIONS
    if oldest <= 0:
        return quads
    return [quad for quad in quads if _number(quad, resource.id) not in range(1, oldest + 1)]


def version_graph(session: Session, resource: Resource, number: int, bases: CatalogueBases) -> list[Quad]:
    """Return the statements on a version, its file and tables. Raises `NotArchived`."""
    quads = quads_of_resources(session, [resource.id], bases)[resource.id]
    found = [quad for quad in quads if _number(quad, resource.id) == number]
    if not found:
        check_forgotten(session, resource.id, number)
        raise NotArchived(f"{resource.url} has no version {number}; it has {resource.versions}")
    return found


def catalogue_graphs(session: Session, names: Sequence[str], bases: CatalogueBases) -> list[Quad]:
    """The catalogue with some of its datasets, each with the file of its current version.

    Versions are not described here: harvesters take every `dcat:Dataset` of a page for a dataset of its own.
    """
    versions = read_versions(session, names)
    found = archive_graph(bases)
    for resource in read_resources(session, names):
        found += _brief(resource, versions[resource.id], bases)
    return found


def archive_graph(bases: CatalogueBases) -> list[Quad]:
    """The archive itself: its title and publisher."""
    return [quad for quad in archive_quads(bases) if _is_under(quad, bases.catalogue())]


def resource_of(session: Session, named: str) -> Resource:
    """A resource by its id. Raises `NotArchived`."""
    found = read_resources(session, [named])
    if not found:
        check_forgotten(session, named)
        raise NotArchived(f"{named[:100]} is not in the archive")
    return found[0]


def rows_of(session: Session, name: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return the rows of a statement of `published.sql`."""
    return session.fetch_all(SQL[name], values)


def _brief(resource: Resource, versions: Sequence[Version], bases: CatalogueBases) -> list[Quad]:
    node = bases.dataset(resource.id)
    current = bases.version(resource.id, versions[-1].number) if versions else None
    graph = GraphBuilder(catalogue_graph(resource.id))
    graph.add(node, "dct:issued", moment(versions[0].captured_at) if versions else None)
    if current is not None:
        graph.add(node, "dcat:version", text(str(versions[-1].number)))
        graph.add(node, "dcat:distribution", NamedNode(current.value + "#distribution"))
    made = resource_quads(resource, versions[-1:], bases=bases)
    left_out = {(node, word("dct:issued")), (node, word("dcat:hasVersion"))}
    shown = [
        quad
        for quad in made
        if quad.subject != current
        and (quad.subject, quad.predicate) not in left_out
        and (quad.predicate == _TYPE or _is_under(quad, node) or _is_under(quad, bases.catalogue()))
    ]
    return shown + graph.quads


def _is_under(quad: Quad, node: NamedNode) -> bool:
    """Return whether a statement is about a node, a part or a version of it."""
    name = quad.subject.value if isinstance(quad.subject, NamedNode) else ""
    return name == node.value or name.startswith((node.value + "#", node.value + "/"))


def _number(quad: Quad, resource: str) -> int | None:
    """Return the number of the version that a statement is about, by the IRI of it or of its file."""
    name = quad.subject.value if isinstance(quad.subject, NamedNode) else ""
    _, found, rest = name.partition(f"/{resource}")
    digits = rest[1:].partition("#")[0]
    return int(digits) if found and rest[:1] in ("/", "_") and digits.isdecimal() else None
