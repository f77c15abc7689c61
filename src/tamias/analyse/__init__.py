"""Reads documents: RDF into quads, pages into links, and what cannot be read into problems.

Touches nothing but the document's stream; whatever a document names stays unfetched.
"""
