"""gRPC over HTTP/2, made with h2 alone: what both ends share, and the end of a client."""
