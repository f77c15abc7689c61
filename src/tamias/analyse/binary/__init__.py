"""Binary serialisations of RDF: HDT and Jelly."""
