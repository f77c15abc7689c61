"""Segments: the quads of many documents, named and appended."""
