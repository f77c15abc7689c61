"""A SPARQL server as a sink."""
