"""Archived bytes over HTTP: bodies, ranges of them, and zips of many."""
