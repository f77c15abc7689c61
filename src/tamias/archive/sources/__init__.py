"""Rows about sources: sites, catalogues, harvests, contexts, hints, rates of change."""
