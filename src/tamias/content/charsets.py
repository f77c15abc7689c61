"""Character encodings: which are believed, what a mark, a header or a page says, and what bytes are. Pure."""

import codecs
import re
from collections.abc import Iterable, Iterator

REFUSED = frozenset(
    {"utf-7", "punycode", "idna", "undefined", "unicode-escape", "raw-unicode-escape", "unicode_escape",
     "raw_unicode_escape", "hz", "iso2022_kr", "cp65000"}
)  # fmt: skip
"""Python knows them, no browser does: they hide markup from whoever looks at the bytes, raise at the first
letter, or take time that grows with the square of the text (200 kB of Punycode take three seconds)."""


_LABELS = {
    "unicode-1-1-utf-8": "utf-8", "x-user-defined": "cp1252", "x-sjis": "cp932", "x-gbk": "gb18030",
    "x-euc-jp": "euc_jp", "x-x-big5": "big5hkscs", "windows-949": "cp949", "dos-874": "cp874",
    "iso-8859-8-i": "iso8859-8", "x-mac-roman": "mac-roman", "x-mac-cyrillic": "mac-cyrillic",
    **{f"x-cp{number}": f"cp{number}" for number in range(1250, 1259)},
}  # fmt: skip
"""Names that browsers know and Python does not (Encoding Standard, section 4.2)."""


def believed_charset(name: str) -> str | None:
    """Python's name of an encoding of text that documents may have; None for any other.

    >>> believed_charset("UTF8"), believed_charset("utf-7"), believed_charset("rot13")
    ('utf-8', None, None)
    """
    try:
        codec = codecs.lookup(_LABELS.get(name.lower(), name))
    except (LookupError, ValueError):
        return None
    return codec.name if codec._is_text_encoding and codec.name not in REFUSED else None


USUAL = "cp1252"
"""Of text that says nothing and is not UTF-8."""
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)


def marked_encoding(head: bytes) -> tuple[str | None, int]:
    """The encoding that a byte order mark tells, and the length of the mark.

    >>> marked_encoding(b"\\xef\\xbb\\xbfname")
    ('utf-8', 3)
    """
    return next(((name, len(mark)) for mark, name in _MARKS if head.startswith(mark)), (None, 0))


def declared_charset(told_type: str | None) -> str | None:
    """The encoding that a Content-Type names, if it is one to believe.

    >>> declared_charset("text/csv; charset=latin2"), declared_charset("text/csv; charset=rot13")
    ('iso8859-2', None)
    """
    found = _CHARSET.search(told_type or "")
    return believed_charset(found[1]) if found else None


_USUAL_NAMES = frozenset({"utf-8", "ascii", "iso8859-1"})
"""What servers declare without looking; browsers read the last two as Windows-1252."""


def text_charset(told_type: str | None) -> str | None:
    """The encoding of text that is not UTF-8, if its Content-Type names a particular one.

    >>> text_charset("text/csv; charset=Shift_JIS"), text_charset("text/csv; charset=iso-8859-1")
    ('shift_jis', None)
    """
    found = declared_charset(told_type)
    return None if found in _USUAL_NAMES else found


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
        return declared_charset(told_type) or USUAL
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


PRESCAN = 1024
"""Bytes in which a declaration counts."""

_STEP = re.compile(rb"<!--|<(meta)(?=[\s/])|</?[a-z][^\s/>]*|<[!/?]", re.IGNORECASE)
_ATTRIBUTE = re.compile(rb"""[\s/]*([^\s/>][^\s/>=]*)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s>"'][^\s>]*)?)?""")
_IN_CONTENT = re.compile(rb"""charset\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;"'][^\s;]*))""", re.IGNORECASE)
_XML = re.compile(rb"""<\?xml[^>]*?\sencoding\s*=\s*["']([^"'>]*)["']""")


def page_charset(head: bytes) -> str | None:
    """The encoding that a `<meta>` names, or else an XML declaration; None where neither does."""
    head = head[:PRESCAN]
    declared = _XML.match(head)
    named = _in_metas(head) if b"charset" in head.lower() else None
    return named or (_ascii_compatible(declared[1]) if declared else None)


def _in_metas(head: bytes) -> str | None:
    at = 0
    while step := _STEP.search(head, at):
        at = step.end()
        if step[0] == b"<!--":
            at = head.find(b"-->", step.start() + 2)
        elif step[0] in (b"<!", b"<?", b"</"):
            at = head.find(b">", at)
        else:
            attributes, at = _attributes(head, at)
            charset = _of_meta(attributes) if step[1] else None
            if charset is not None:
                return charset
        if at < 0:
            return None
    return None


def _attributes(head: bytes, at: int) -> tuple[dict[bytes, bytes], int]:
    """The attributes of a tag, the first of each name, and where they end."""
    found: dict[bytes, bytes] = {}
    while (attribute := _ATTRIBUTE.match(head, at)) and attribute.end() > at:
        at = attribute.end()
        value = attribute[2] or b""
        found.setdefault(attribute[1].lower(), value[1:-1] if value[:1] in (b'"', b"'") else value)
    return found, at


def _of_meta(attributes: dict[bytes, bytes]) -> str | None:
    if b"charset" in attributes:
        return _ascii_compatible(attributes[b"charset"])
    if attributes.get(b"http-equiv", b"").lower() != b"content-type":
        return None
    named = _IN_CONTENT.search(attributes.get(b"content", b""))
    return _ascii_compatible(named[1] or named[2] or named[3] or b"") if named else None


def _ascii_compatible(label: bytes) -> str | None:
    """What is read as ASCII until here is no UTF-16, whatever it says."""
    name = believed_charset(label.decode("ascii", "replace").strip())
    return "utf-8" if name is not None and name.startswith("utf-16") else name
