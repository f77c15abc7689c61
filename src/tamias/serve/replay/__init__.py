"""Archived bytes over HTTP: versions, ranges, zips, Memento and CDX, and who may have them."""
