"""Sinks of files: one for each document, or one table of all."""
