"""Microformats 1 and 2 of a page: items and relations into quads, as docs/microformats.md describes."""

from tamias.plugins import Feature

FEATURE = Feature(
    name="microformats",
    about="reads microformats of pages",
    module=__name__,
    requires=("markup",),
    extractors={"microformats": "tamias.features.microformats.gate:GATE"},
)
