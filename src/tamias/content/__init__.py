"""What a file is and what it holds: formats, sniffing, charsets, containers, canonical forms.

Reads spool files and bounded temporary files; no name from outside becomes a path.
"""
