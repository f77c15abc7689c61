"""Markup: data in attributes of pages, by RDFa, Microdata and `meta` elements (Dublin Core, Open Graph)."""

from tamias.plugins import Feature

FEATURE = Feature(
    name="markup",
    about="reads RDFa, Microdata and meta elements of pages",
    module=__name__,
    extractors={name: f"{__name__}.gates:{name.upper()}" for name in ("microdata", "rdfa", "metas")},
)
