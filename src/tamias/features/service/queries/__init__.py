"""Queries of the service: a pool of threads with sessions, histories and their cache, searches."""
