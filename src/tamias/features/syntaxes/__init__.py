"""Syntaxes of RDF that few use: RDF/JSON and TriX."""

from tamias.plugins import Feature

FEATURE = Feature(
    name="syntaxes",
    about="reads RDF/JSON and TriX",
    module=__name__,
    formats={
        "application/rdf+json": {
            "aliases": ("application/x-rdf+json", "text/rdf+json"),
            "names": ("rdf/json", "rdfjson"),
            "endings": ("rj",),
            "form": "statements",
            "analyser": f"{__name__}.rdf_json:RdfJsonAnalyser",
            "q": 0.6,
        },
        "application/trix": {
            "aliases": ("application/trix+xml", "application/x-trix", "text/trix"),
            "endings": ("trix",),
            "form": "statements",
            "analyser": f"{__name__}.trix:TrixAnalyser",
            "q": 0.6,
        },
    },
)
