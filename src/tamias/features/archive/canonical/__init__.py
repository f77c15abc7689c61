"""Content of a stored file apart from its bytes: its rows, statements, JSON values or members.

Read for fingerprints and diffs; nothing here trusts a file, and every reading is bounded.
"""
