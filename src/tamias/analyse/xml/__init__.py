"""XML that is read with care: entities within bounds, and RDF/XML that breaks its own rules."""
