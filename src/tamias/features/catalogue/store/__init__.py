"""The local SPARQL store: a keeper process, one that writes, and some that answer queries."""
