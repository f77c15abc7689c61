"""The JSON-LD contexts that a worker has at hand."""

from collections import OrderedDict
from collections.abc import Iterable

MAX_CONTEXT = 1 << 20
MAX_CONTEXTS = 256
ROUNDS = 10
"""How often a document may be analysed again because a context named another context."""
ACCEPT_CONTEXT = "application/ld+json, application/json;q=0.9, */*;q=0.1"


class ContextCache:
    """Answers from memory only; whoever analyses a document fetches what was wanted and analyses it again.

    An address that gave nothing is remembered too, so that nobody asks for it over and over.
    """

    def __init__(self, most: int = MAX_CONTEXTS) -> None:
        self._most = most
        self._kept: OrderedDict[str, bytes | None] = OrderedDict()

    def __call__(self, address: str) -> bytes | None:
        """The context, if it is at hand. Safe to call from any thread."""
        return self._kept.get(address)

    def to_fetch(self, wanted: Iterable[str]) -> list[str]:
        """Of the addresses that were wanted, those on the Web that nobody has tried."""
        addresses = dict.fromkeys(wanted)
        return [
            each for each in addresses if each.startswith(("http://", "https://")) and each not in self._kept
        ]

    def put(self, address: str, data: bytes | None) -> None:
        """Keeps a context, or that there is none; one that is too large counts as none."""
        self._kept[address] = data if data is not None and len(data) <= MAX_CONTEXT else None
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
