"""Jelly: streams of RDF in Protocol Buffers, read and written with pyjelly."""

from tamias.plugins import Feature

FEATURE = Feature(
    name="jelly",
    about="reads and writes Jelly, RDF in Protocol Buffers",
    module=__name__,
    formats={
        "application/x-jelly-rdf": {
            "aliases": ("application/x-jelly",),
            "endings": ("jelly",),
            "form": "statements",
            "analyser": "tamias.features.jelly.analyser:JellyAnalyser",
            "writer": "jelly",
            "q": 0.7,
        }
    },
    writers={"jelly": "tamias.features.jelly.writer:write_jelly"},
)
