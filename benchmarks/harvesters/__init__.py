"""The harvesters of portals and SPARQL endpoints, beside plain loops that do the same."""
