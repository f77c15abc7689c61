"""Filters: each one may keep a URL out of the frontier, and says why.

They see a `fetch_url` and its depth, and know nothing of each other; only block lists read files.
"""
