"""Harvester for SPARQL endpoints: a whole endpoint copied page by page, whatever caps the server has."""

from tamias.harvesters.sparql.harvester import SparqlHarvester

__all__ = ["SparqlHarvester"]
