"""Graph stores: each document as a named graph of a SPARQL server, or as a Turtle file."""

from tamias.plugins import Feature

FEATURE = Feature(
    name="graph_stores",
    about="delivers documents to SPARQL servers and as Turtle files",
    module=__name__,
    requires=("dcat",),
    graph_sinks={
        "sparql": "tamias.features.graph_stores.document_files:sparql",
        "turtle-files": "tamias.features.graph_stores.document_files:turtle_files",
    },
    sink_trials={"sparql": "tamias.features.graph_stores.document_files:try_server"},
    sink_targets={"sparql": "tamias.features.graph_stores.sparql_sink:checked_address"},
)
