"""HDT 1.0: RDF packed into a dictionary and bitmaps. Pure functions over bytes and numpy arrays.

Here, below the steps, because one step reads it and another writes it.
"""

from tamias.plugins import Feature

FEATURE = Feature(
    name="hdt",
    about="reads and writes HDT, a packed form of RDF",
    module=__name__,
    requires=("graph_stores",),
    formats={
        "application/vnd.hdt": {
            "aliases": ("application/hdt", "application/x-hdt"),
            "endings": ("hdt",),
            "signatures": (b"$HDT",),
            "form": "statements",
            "analyser": "tamias.features.hdt.analyser:HdtAnalyser",
            "writer": "hdt",
            "sandboxed": True,
            "q": 0.4,
        }
    },
    writers={"hdt": "tamias.features.hdt.writer:export_hdt"},
    graph_sinks={"hdt-files": "tamias.features.hdt.writer:hdt_files"},
)
