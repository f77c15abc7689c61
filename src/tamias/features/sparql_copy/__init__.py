"""SPARQL endpoints: copies of whole endpoints, and the answers to single queries."""

from tamias.plugins import Feature

FEATURE = Feature(
    name="sparql_copy",
    about="copies SPARQL endpoints, and follows what a query returns",
    module=__name__,
    requires=("dcat", "harvests"),
    harvesters={
        "sparql": "tamias.features.sparql_copy.copying:SparqlHarvester",
        "sparql-query": "tamias.features.sparql_copy.query_source:QueryHarvester",
    },
)
