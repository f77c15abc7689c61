"""The archive as a graph: DCAT 3 with versions, PROV, CSVW, DQV, and the Open Dataset Archive's own terms.

One named graph for each resource, version, catalogue and description, so that what changes can be replaced
alone. The graph of a version never changes, unless its content is profiled or its title changes.
"""

from tamias.archive.catalogue.measures import measure_quads, metric_quads
from tamias.archive.catalogue.profiles import profile_quads
from tamias.archive.catalogue.resource import resource_quads
from tamias.archive.catalogue.stream import (
    archive_quads,
    catalogue_quads,
    quads_of_declared,
    quads_of_heads,
    quads_of_portals,
    quads_of_resources,
    quads_of_versions,
)
from tamias.archive.catalogue.terms import ARC, PREFIXES, CatalogueBases, bases_of, catalogue_graph

__all__ = [
    "ARC",
    "PREFIXES",
    "CatalogueBases",
    "archive_quads",
    "bases_of",
    "catalogue_graph",
    "catalogue_quads",
    "measure_quads",
    "metric_quads",
    "profile_quads",
    "quads_of_declared",
    "quads_of_heads",
    "quads_of_portals",
    "quads_of_resources",
    "quads_of_versions",
    "resource_quads",
]
