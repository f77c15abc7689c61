"""Why a content could not be compared as what its type says it is."""


class Unreadable(Exception):
    """A content is not what its type says, or would cost too much to read; the message says which."""
