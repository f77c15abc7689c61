"""Plain JSON is JSON-LD where the answer's Link header names a context (JSON-LD 1.1, section 6.1)."""

from collections.abc import Iterator

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
    told, found = bare_type(capture.told_type), document.media_type
    is_json = found == "application/json" or (found.endswith("+json") and found not in _OWN_MEANING)
    if not is_json or told == JSON_LD or document.member is not None or not capture.hops:
        return document
    target = json_ld_context(capture.hops[-1].headers)
    if target is None:
        return document
    try:
        context = resolve(target, capture.final_url)
    except UrlError:
        return document
    return msgspec.structs.replace(document, media_type=JSON_LD, context=context)
