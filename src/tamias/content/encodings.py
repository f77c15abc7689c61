"""Which encoding a text is in, and the text itself, as far as that can be told from its bytes. Pure."""

import codecs
import re
from collections.abc import Iterable, Iterator

from tamias.content.canonical.text import marked_encoding
from tamias.content.charsets import believed_charset

USUAL = "cp1252"
"""Of text that says nothing and is not UTF-8."""

_CHARSET = re.compile(r"charset\s*=\s*[\"']?([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)


def encoding_of(pieces: Iterable[bytes], told_type: str | None) -> str:
    """What its mark says, UTF-8 if it can be that, what the server told, or the usual one.

    >>> encoding_of([b"a,\\xc3", b"\\xa9"], None), encoding_of([b"caf\\xe9"], "text/csv; charset=iso-8859-2")
    ('utf-8', 'iso8859-2')
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    first = True
    try:
        for piece in pieces:
            marked = marked_encoding(piece)[0] if first else None
            if marked is not None:
                return marked
            first = False
            decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return _told(told_type) or USUAL
    return "utf-8"


def decoded(pieces: Iterable[bytes], encoding: str) -> Iterator[str]:
    """The text without its mark; what cannot be decoded is replaced."""
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    first = True
    for piece in pieces:
        text = decoder.decode(piece)
        yield text.removeprefix("\ufeff") if first else text
        first = first and not text
    yield decoder.decode(b"", final=True)


def _told(told_type: str | None) -> str | None:
    found = _CHARSET.search(told_type or "")
    return believed_charset(found[1]) if found else None
