"""The URLFrontier API over gRPC, on the tables the workers use.

`http2` and `calls` are the wire, `puts`, `gets` and `control` the calls, `server` wires them to the database.
"""
