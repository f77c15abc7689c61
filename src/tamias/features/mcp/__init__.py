"""The Model Context Protocol, for assistants: a few tools that read the archive. Written on JSON-RPC 2.0."""

from tamias.plugins import Feature, Verb

FEATURE = Feature(
    name="mcp",
    about="tools that read the archive, for assistants",
    module=__name__,
    requires=("service", "catalogue", "dcat", "archive"),
    verbs={
        "mcp": Verb(
            "serve the archive to an assistant over the Model Context Protocol",
            "tamias.features.mcp.verb:command",
        )
    },
    endpoints={"mcp": "tamias.features.mcp.http:ENDPOINTS"},
)
