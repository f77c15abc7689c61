"""Structured data in pages: one extractor a file, all on one parsed tree.

An extractor has a gate in `extraction`, bytes and patterns of which one must stand in the page for it to be
loaded, and `extract(page)`, which yields findings and never raises for what stands in the page.
"""
