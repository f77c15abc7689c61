"""Formats of files and their content: sniffing, charsets, containers, canonical forms.

Reads spool files and bounded temporary files; no name from outside becomes a path.
"""
