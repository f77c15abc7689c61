"""Terms from their parts, as lenient as the parsers: what can be written as N-Quads is let in."""

import re
from hashlib import blake2b

from pyoxigraph import BaseDirection, BlankNode, Literal, NamedNode, RdfFormat, parse

_WRITABLE = re.compile(r'[A-Za-z][A-Za-z0-9+.\-]*:[^\x00-\x20<>"{}|^`\\]*')


def iri(text: str) -> NamedNode:
    """An absolute IRI. Raises `ValueError` for what N-Quads could not say."""
    try:
        return NamedNode(text)
    except ValueError:
        if not _WRITABLE.fullmatch(text):
            raise ValueError(f"{text[:200]!r} is not an absolute IRI") from None
    # Only a parser makes an IRI that breaks a finer rule, such as %zz.
    line = f"<{text}> <urn:p> <urn:o> .".encode()
    [quad] = parse(line, format=RdfFormat.N_TRIPLES, lenient=True)
    return NamedNode(text) if not isinstance(quad.subject, NamedNode) else quad.subject


def blank_node(label: str) -> BlankNode:
    """A blank node; a label that N-Quads does not allow becomes its hash."""
    try:
        if ":" not in label:  # which pyoxigraph takes, writes, and cannot read again
            return BlankNode(label)
    except ValueError:
        pass
    return BlankNode("z" + blake2b(label.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest())


def literal(value: str, language: str | None = None, datatype: str | None = None) -> Literal:
    """A literal; of language and datatype, the language counts. Raises `ValueError` for a bad one."""
    if language:
        tag, _, direction = language.partition("--")
        return Literal(value, language=tag, direction=BaseDirection(direction) if direction else None)
    return Literal(value, datatype=iri(datatype)) if datatype else Literal(value)
