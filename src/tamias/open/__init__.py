"""Finds out what a body really is and peels compression and archives off it, within limits.

Reads spool files and bounded temporary files; no name from outside becomes a path.
"""
