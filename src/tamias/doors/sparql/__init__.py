"""The door to SPARQL endpoints: a whole endpoint copied page by page, whatever caps the server has."""

from tamias.doors.sparql.door import SparqlDoor

__all__ = ["SparqlDoor"]
