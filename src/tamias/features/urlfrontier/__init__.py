"""The URLFrontier API over gRPC, on the tables the workers use.

`http2` and `calls` are the wire, `puts`, `gets` and `control` the calls, `server` wires them to the database.
"""

from tamias.plugins import Feature, Verb

FEATURE = Feature(
    name="urlfrontier",
    about="serves the frontier to other crawlers, and to workers without a database",
    module=__name__,
    requires=("remote_workers", "tokens"),
    verbs={
        "frontier": Verb(
            "serve the frontier over gRPC, for any crawler", "tamias.features.urlfrontier.verb:command"
        )
    },
)
