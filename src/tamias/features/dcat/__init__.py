"""The archive as a graph: DCAT 3 with versions, PROV, CSVW, DQV, and the Open Dataset Archive's own terms.

One named graph for each resource, version, catalogue and description, so that what changes can be replaced
alone. The graph of a version never changes, unless its content is profiled or its title changes.
"""

from tamias.plugins import Feature

FEATURE = Feature(
    name="dcat",
    about="describes datasets and the archive in RDF",
    module=__name__,
    requires=("archive",),
    page_datasets={"schemaorg": f"{__name__}.datasets.schemaorg:datasets_in"},
)
