"""Exports: what was crawled and what the archive holds, as files for other programs."""

from tamias.plugins import Feature, Verb

FEATURE = Feature(
    name="exports",
    about="writes what was crawled as RDF, WARC, Parquet, BagIt and other files",
    module=__name__,
    requires=("dcat", "archive", "tables"),
    verbs={"export": Verb("write what was crawled to a file", "tamias.features.exports.verb:command")},
)
