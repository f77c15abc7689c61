"""RDF syntaxes in text: strict parsers first, and what mends or passes over faults where they give up."""
