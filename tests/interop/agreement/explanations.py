"""Why a reader and ours differ about files, as `explained.toml` tells it."""

import re
from fnmatch import fnmatchcase

import msgspec


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """One reason for differences; who is right, and what the specification says."""

    files: tuple[str, ...]
    """Patterns of `suite/path`."""
    readers: tuple[str, ...]
    why: str
    right: str
    says: str
    complaint: str | None = None
    """What the reader complains of, as a regular expression; empty where it is silent. None: anything."""
    ours: str | None = None
    """Whether ours complains: `problem` or `silent`. None: either."""

    def names(self, key: str, reader: str) -> bool:
        """Whether it is about a file."""
        return reader in self.readers and any(fnmatchcase(key, pattern) for pattern in self.files)

    def is_of(self, suite: str) -> bool:
        """Whether it is about this suite alone."""
        return all(pattern.startswith(f"{suite}/") for pattern in self.files)

    def covers(self, key: str, reader: str, theirs: str | None, mine: str | None) -> bool:
        """Whether it explains a difference."""
        if not self.names(key, reader):
            return False
        if self.complaint is not None and not _matches(self.complaint, theirs or ""):
            return False
        return self.ours is None or (mine is not None) == (self.ours == "problem")


def _matches(pattern: str, text: str) -> bool:
    return re.search(pattern, text) is not None if pattern else not text
