"""`/sparql`: the SPARQL 1.1 Protocol over the catalogue and the crawled graphs, for reading only."""
