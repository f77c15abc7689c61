"""Datasets of portals and pages: read from their records, and described in DCAT."""
