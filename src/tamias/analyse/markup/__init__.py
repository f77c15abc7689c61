"""Structured data in pages: one extractor a file, all on one parsed tree.

An extractor has `GATE`, bytes and patterns in lower case of which one must stand in the page for it to be
asked at all, and `extract(page)`, which yields findings and never raises for what stands in the page.
"""
