"""How an attempt on a URL ended. The words are those of the metadata graph."""

from enum import IntEnum


class Outcome(IntEnum):
    """The outcome of the latest attempt; `NEW` before the first one."""

    NEW = 0
    OK = 1
    UNCHANGED = 2
    GONE = 3
    REFUSED = 4
    FAILED = 5
    SKIPPED = 6

    @property
    def word(self) -> str:
        """The outcome as users read it, such as `ok`."""
        return self.name.lower()
