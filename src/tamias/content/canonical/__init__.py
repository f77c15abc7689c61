"""Content of a stored file apart from its bytes: its rows, statements, JSON values or members.

Read for fingerprints and diffs; nothing here trusts a file, and every reading is bounded.
"""


class Unreadable(Exception):
    """A content is not what its type says, or would cost too much to read; the message says which."""


class BrokenDocument(Unreadable):
    """A document has faults, but a part of it can be read."""
