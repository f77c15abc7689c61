"""The catalogue in a SPARQL store: who owns it, how it is asked, and how it follows what is committed."""
