"""gRPC over HTTP/2: connections, streams, calls, their status, and the services every tool expects."""
