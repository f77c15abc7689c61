"""The catalogue: a SPARQL store of what is archived and crawled, made from the rest and kept up to date."""

from tamias.plugins import Feature, Verb

FEATURE = Feature(
    name="catalogue",
    about="the catalogue and the crawled graphs in SPARQL",
    module=__name__,
    requires=("dcat", "graph_stores"),
    verbs={
        "query": Verb(
            "query the catalogue and the crawled graphs in SPARQL", f"{__name__}.query_verb:command"
        ),
        "where": Verb(
            "show which document, endpoint or dump serves an IRI", f"{__name__}.where_verb:command"
        ),
    },
    queries={"sparql": f"{__name__}.archive_queries:ArchiveQueries"},
    erasers={"catalogue": f"{__name__}.catalogue:erase"},
    rebuilds={"catalogue": f"{__name__}.catalogue:rebuild"},
)
