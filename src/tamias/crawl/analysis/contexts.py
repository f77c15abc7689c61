"""The JSON-LD contexts that a worker has at hand, and the one that a Link header names for plain JSON."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator

import msgspec

from tamias.analyse.links.header import json_ld_context
from tamias.content.formats import JSON_LD, bare_type
from tamias.model.capture import Capture
from tamias.model.document import Document
from tamias.model.errors import UrlError
from tamias.model.finding import Problem
from tamias.model.url import resolve

_OWN_MEANING = frozenset({"application/rdf+json", "application/linkset+json"})


def in_linked_context(parts: Iterator[Document | Problem], capture: Capture) -> Iterator[Document | Problem]:
    """The parts of a body, plain JSON among them as JSON-LD where its answer names a context."""
    for part in parts:
        yield part if isinstance(part, Problem) else _in_context(part, capture)


def _in_context(document: Document, capture: Capture) -> Document:
    """The document as JSON-LD in the context that its answer names; the same where it names none."""
    found = document.media_type
    if found != "application/json" and (not found.endswith("+json") or found in _OWN_MEANING):
        return document
    if bare_type(capture.declared_type) == JSON_LD or document.member is not None or not capture.hops:
        return document
    target = json_ld_context(capture.hops[-1].headers)
    if target is None:
        return document
    try:
        context = resolve(target, capture.final_url)
    except UrlError:
        return document
    return msgspec.structs.replace(document, media_type=JSON_LD, context=context)


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
        self._known: OrderedDict[str, bytes | None] = OrderedDict()

    def __call__(self, address: str) -> bytes | None:
        """The context, if it is at hand. Safe to call from any thread."""
        return self._known.get(address)

    def to_fetch(self, wanted: Iterable[str]) -> list[str]:
        """Return the wanted Web addresses that nobody has tried yet."""
        addresses = dict.fromkeys(wanted)
        return [
            each for each in addresses if each.startswith(("http://", "https://")) and each not in self._known
        ]

    def put(self, address: str, data: bytes | None) -> None:
        """Keeps a context, or that there is none; one that is too large counts as none."""
        self._known[address] = data if data is not None and len(data) <= MAX_CONTEXT else None
        while len(self._known) > self._most:
            self._known.popitem(last=False)
