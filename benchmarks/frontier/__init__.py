"""How fast the frontier is as it grows, beside the obvious one-table queue; and its gRPC service."""
