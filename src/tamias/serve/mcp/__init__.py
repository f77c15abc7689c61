"""The Model Context Protocol, for assistants: a few tools that read the archive. Written on JSON-RPC 2.0."""
