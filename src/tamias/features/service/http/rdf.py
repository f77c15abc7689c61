"""Statements as bytes in the form a client wants, with what a cache needs to know of them."""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Final

from pyoxigraph import Quad, Triple, serialize
from starlette.requests import Request
from starlette.responses import Response

from tamias.content.formats import CSV, FORMATS, HTML, JSON, JSON_LD, NTRIPLES, RDF_XML, TURTLE, XHTML
from tamias.features.dcat.terms import PREFIXES
from tamias.features.service.http.exchange import preferred_by, tag_of, tagged_answer

_OFFERED: Final = [FORMATS[kind] for kind in (TURTLE, JSON_LD, NTRIPLES, RDF_XML)]
FORMS: Final = {row.endings[0]: row.syntax for row in _OFFERED if row.syntax}
"""By the ending of an address."""
MEDIA_TYPES: Final = {row.endings[0]: row.media_type for row in _OFFERED}
_OF_PAGES: Final = (HTML, XHTML, JSON, CSV)
_ENDINGS: Final = {media_type: ending for ending, media_type in MEDIA_TYPES.items()}
_PREFIXES: Final = {
    name: PREFIXES[name]
    for name in ("arc", "csvw", "dcat", "dct", "dqv", "foaf", "prov", "rdf", "spdx", "xsd")
} | {"hydra": "http://www.w3.org/ns/hydra/core#", "void": "http://rdfs.org/ns/void#"}


def wanted_form(request: Request) -> str | None:
    """The ending of the form of RDF that a client likes best; None where it would rather have a page."""
    return _ENDINGS.get(preferred_by(request, [*_OF_PAGES, *_ENDINGS]) or "")


async def rdf_answer(
    request: Request, quads: Iterable[Quad], ending: str, headers: dict[str, str] | None = None
) -> Response:
    """The statements without their graphs; nothing new for a client that has them."""
    content = await asyncio.to_thread(written, quads, ending)
    sent = {"ETag": tag_of(content), "Cache-Control": "no-cache", "Vary": "Accept, Accept-Encoding"}
    return tagged_answer(request, content, MEDIA_TYPES[ending], {**sent, **(headers or {})})


def written(quads: Iterable[Quad], ending: str) -> bytes:
    """The bytes of statements, each told once."""
    return serialize(_triples(quads), format=FORMS[ending], prefixes=_PREFIXES) or b""


def _triples(quads: Iterable[Quad]) -> Iterator[Triple]:
    """Yield each triple once; between two, other threads can run."""
    seen = set()
    for quad in quads:
        if quad.triple not in seen:
            seen.add(quad.triple)
            yield quad.triple
