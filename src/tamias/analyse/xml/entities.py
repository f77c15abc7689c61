"""Takes the entities of an XML prolog into our own hands.

pyoxigraph expands declarations eagerly and without bound: 655 bytes can abort its process. What reaches
it from here has only flat entities of bounded size, and bounded use of them.
"""

import re
from collections.abc import Iterator

from tamias.analyse.chunks import MIB, RefusedError

MAX_PROLOG = 256 * 1024
MAX_LEVELS = 8
FREE_EXPANSION = 8 * MIB
EXPANSION_RATIO = 10
"""Entities may add this many bytes for each one read, beyond `FREE_EXPANSION`."""

_NOTE = rb"<!--(?:[^-]++|-(?!->))*-->"
_MISC = re.compile(rb"(?:\s++|<\?(?:[^?]++|\?(?!>))*\?>|" + _NOTE + rb")*")
_DOCTYPE = re.compile(
    rb"""<!DOCTYPE(?:[^\["'>]++|"[^"]*+"|'[^']*+')*"""
    rb"""(?:\[(?:[^\]"'<]++|"[^"]*+"|'[^']*+'|""" + _NOTE + rb"""|<(?!!--))*\]\s*+)?>"""
)
_COMMENT = re.compile(_NOTE)
_ENTITY = re.compile(rb"""<!ENTITY\s++([^\s"'%>]++)\s++(?:"([^"]*+)"|'([^']*+)')\s*+>""")
_REFERENCE = re.compile(rb"&([^\s;&#]++);")
_BARE_AMPERSAND = re.compile(rb"&(?!#)")
_ENCODING = re.compile(rb"""(<\?xml[^>]*?\sencoding\s*=\s*)("[^"]*"|'[^']*')""")
_PREDEFINED = {b"lt", b"gt", b"amp", b"quot", b"apos"}
_ESCAPED = {sign: b"&#%d;" % sign for sign in b"\"'<>[]%"}


def flat_entities(chunks: Iterator[bytes], entity_bytes: int) -> Iterator[bytes]:
    """The same XML, in UTF-8 and declared so, with every entity already expanded where it is declared.

    Raises `RefusedError` when the entities, or their use, would grow past the limits.
    """
    prolog, rest = _prolog(chunks)
    doctype = _DOCTYPE.search(prolog)
    if doctype is None:
        yield _ENCODING.sub(rb'\1"UTF-8"', prolog, count=1) + rest
        yield from chunks
        return
    entities = _flattened(_COMMENT.sub(b"", doctype[0]), entity_bytes)
    before, after = prolog[: doctype.start()], prolog[doctype.end() :]
    yield _ENCODING.sub(rb'\1"UTF-8"', before, count=1) + _declarations(entities) + after
    yield from _bounded_use(rest, chunks, {name: len(value) for name, value in entities.items()})


def _prolog(chunks: Iterator[bytes]) -> tuple[bytes, bytes]:
    """Return all before the root element, and the rest of what was read with it."""
    head = b""
    for chunk in chunks:
        head += chunk
        end = _prolog_end(head)
        if end is not None:
            return head[:end], head[end:]
        if len(head) > MAX_PROLOG:
            raise RefusedError(f"XML prolog of more than {MAX_PROLOG} bytes, not read")
    return b"", head


def _prolog_end(head: bytes) -> int | None:
    end = _MISC.match(head).end()  # type: ignore[union-attr]
    if doctype := _DOCTYPE.match(head, end):
        end = _MISC.match(head, doctype.end()).end()  # type: ignore[union-attr]
    unfinished = len(head) - end < 9 or head.startswith((b"<!", b"<?"), end)
    return None if unfinished else end


def _flattened(doctype: bytes, entity_bytes: int) -> dict[bytes, bytes]:
    declared: dict[bytes, bytes] = {}
    for name, double, single in _ENTITY.findall(doctype):
        declared.setdefault(name, double or single)
    flat: dict[bytes, bytes] = {}
    for name in declared:
        _expand(name, declared, flat, entity_bytes, MAX_LEVELS)
    if sum(map(len, flat.values())) > entity_bytes:
        raise _too_large(entity_bytes)
    return flat


def _expand(
    name: bytes, declared: dict[bytes, bytes], flat: dict[bytes, bytes], entity_bytes: int, levels: int
) -> bytes:
    if name in flat:
        return flat[name]
    if levels == 0:
        raise RefusedError(f"XML entities nested more than {MAX_LEVELS} deep, not read")
    pieces, size = _REFERENCE.split(declared[name]), 0
    for index, piece in enumerate(pieces):
        if index % 2 == 0:
            pieces[index] = _BARE_AMPERSAND.sub(b"&#38;", piece)
        elif piece in declared:
            pieces[index] = _expand(piece, declared, flat, entity_bytes, levels - 1)
        else:
            pieces[index] = b"&%s;" % piece if piece in _PREDEFINED else b"&#38;%s;" % piece
        size += len(pieces[index])
        if size > entity_bytes:
            raise _too_large(entity_bytes)
    flat[name] = b"".join(pieces)
    return flat[name]


def _too_large(entity_bytes: int) -> RefusedError:
    return RefusedError(
        f"XML entities expand to more than {entity_bytes} bytes (limit analyse.entity_bytes), not read"
    )


def _declarations(entities: dict[bytes, bytes]) -> bytes:
    lines = []
    for name, value in entities.items():
        quoted = b"".join(_ESCAPED.get(sign) or bytes((sign,)) for sign in value)
        lines.append(b'<!ENTITY %s "%s">' % (name, quoted))
    return b"<!DOCTYPE rdf:RDF [" + b"".join(lines) + b"]>" if entities else b""


def _bounded_use(rest: bytes, chunks: Iterator[bytes], sizes: dict[bytes, int]) -> Iterator[bytes]:
    read, expanded, chunk = 0, 0, rest
    while chunk:
        read += len(chunk)
        if b"&" in chunk and sizes:
            expanded += sum(sizes.get(name, 0) for name in _REFERENCE.findall(chunk))
            if expanded > FREE_EXPANSION + EXPANSION_RATIO * read:
                raise RefusedError(f"XML entities grow the document by more than {EXPANSION_RATIO} times")
        yield chunk
        chunk = next(chunks, b"")
