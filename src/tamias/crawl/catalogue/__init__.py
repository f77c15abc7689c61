"""The catalogue in a SPARQL store: the child that owns it, how it is asked, and how it follows what is committed."""
