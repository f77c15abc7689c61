"""Which character encodings are believed when somebody outside names one. Pure."""

import codecs

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
