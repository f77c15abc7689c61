"""The REST API: one file for each resource of it, each with its table of endpoints."""
