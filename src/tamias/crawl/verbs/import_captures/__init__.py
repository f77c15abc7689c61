"""Captures of other crawlers: read from their files, and committed as visits without a request."""
