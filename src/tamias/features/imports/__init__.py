"""Imports: captures of other crawlers become documents and versions, without a request."""

from tamias.plugins import Feature, Verb

FEATURE = Feature(
    name="imports",
    about="takes captures from WARC, ARC, WACZ and CDX files",
    module=__name__,
    requires=("warc", "archive"),
    tables=("imported_record",),
    schema="schema.sql",
    crawl_options={"import-seeds": f"{__name__}.seeds:import_seeds"},
    verbs={
        "import": Verb(
            "take captures from WARC, ARC, WACZ and CDX files, without a request",
            "tamias.features.imports.verb:command",
        )
    },
)
