"""Character encodings: which are believed, what a mark, a header or a page says, and what bytes are. Pure."""

import codecs
import io
import re
from contextlib import suppress
from operator import itemgetter
from typing import BinaryIO

import msgspec

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


def declared_charset(content_type: str | None) -> str | None:
    """The encoding that a Content-Type names, if it is one to believe.

    >>> declared_charset("text/csv; charset=latin2"), declared_charset("text/csv; charset=rot13")
    ('iso8859-2', None)
    """
    found = _CHARSET.search(content_type or "")
    return believed_charset(found[1]) if found else None


_USUAL_NAMES = frozenset({"utf-8", "ascii", "iso8859-1", "cp1252"})
"""What servers declare without looking; browsers read the last three as Windows-1252."""


def text_charset(content_type: str | None) -> str | None:
    """The encoding of text that is not UTF-8, if its Content-Type names a particular one.

    >>> text_charset("text/csv; charset=Shift_JIS"), text_charset("text/csv; charset=iso-8859-1")
    ('shift_jis', None)
    """
    found = declared_charset(content_type)
    return None if found in _USUAL_NAMES else found


CHUNK = 1 << 20
_SAMPLE = 1 << 18
_GUESSED = 1 << 12
"""Bytes of lines that are not ASCII from which a code page is guessed."""


class Encoding(msgspec.Struct, frozen=True):
    """The encoding of a text."""

    name: str
    mark: int = 0
    """Bytes of its byte order mark."""
    faults: bool = False
    """Whether some bytes are not in the encoding of the rest."""


def found_encoding(file: BinaryIO, content_type: str | None, most: int | None = None) -> Encoding:
    """Decide how a text is encoded; profiles, tables, diffs and exports all ask here.

    Its byte order mark counts first, then UTF-8 if nearly all of it is, then the charset that the server or
    the page declares if the bytes can be in it, then a guess by the letters of languages.

    >>> found_encoding(io.BytesIO("Łódź, Kraków".encode("cp1250")), None).name
    'cp1250'
    """
    head = file.read(_SAMPLE)
    marked, length = marked_encoding(head)
    if marked is not None:
        return Encoding(marked, length)
    if wide := utf16_without_mark(head):
        return Encoding(wide)
    file.seek(0)
    faults, beyond, sample = _utf8_faults(file, most)
    if faults * 10 <= beyond:
        return Encoding("utf-8", faults=faults > 0)
    declared = declared_charset(content_type) or (page_charset(head) if head.lstrip()[:1] == b"<" else None)
    if declared and declared not in _USUAL_NAMES and not declared.startswith("utf"):
        with suppress(UnicodeError):
            codecs.getincrementaldecoder(declared)().decode(sample)
            return Encoding(declared)
    return Encoding(guessed_charset(sample))


def encoding_of(content: bytes, content_type: str | None) -> str:
    """The encoding of a text at hand.

    >>> encoding_of(b"a,\\xc3\\xa9", None), encoding_of(b"caf\\xe9", "text/csv; charset=iso-8859-2")
    ('utf-8', 'iso8859-2')
    """
    return found_encoding(io.BytesIO(content), content_type).name


def utf16_without_mark(head: bytes) -> str | None:
    """UTF-16 shows by the NUL beside each character of a European text."""
    nuls = head.count(0)
    if nuls * 4 < len(head) or len(head) < 4:
        return None
    if head[1::2].count(0) > 0.9 * nuls:
        return "utf-16-le"
    return "utf-16-be" if head[::2].count(0) > 0.9 * nuls else None


def _utf8_faults(file: BinaryIO, most: int | None) -> tuple[int, int, bytes]:
    """Count faults and characters beyond ASCII; the sample is from where the first fault is."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    faults, beyond, sample = 0, 0, b""
    left = most
    while chunk := file.read(CHUNK if left is None else min(CHUNK, left)):
        left = None if left is None else left - len(chunk)
        if not chunk.isascii() or decoder.getstate()[0]:
            text = decoder.decode(chunk)
            wrong = text.count("\ufffd") - chunk.count(b"\xef\xbf\xbd")
            sample = sample or (chunk if wrong else b"")
            faults += wrong
            beyond += len(text) - len(text.encode("ascii", "ignore")) - wrong
    if decoder.getstate()[0]:
        faults, sample = faults + 1, sample or decoder.getstate()[0]
    return faults, beyond, sample


_ASIAN = {
    "cp950": "的一是不有人中大上國以要用為市區路鄉鎮縣號街段里村臺灣日月年時電話地址名稱水山公園資料",
    "gb18030": "的一是不有人中大上国以要用为市区路乡镇县号街段里村日月年时电话地址名称水山公园资料据",
    "cp932": "のにはをたがでてとしれさあいうるなもすりこだらまんく市区町村年月日県都",
    "euc_jp": "のにはをたがでてとしれさあいうるなもすりこだらまんく市区町村年月日県都",
    "cp949": "이다는에의가을를하고지사도로서기시구동리군면읍대한국년월일수정인",
}
"""Of each code page of many letters, characters that make up much of any text in it."""
_CYRILLIC = ("оеаинтсрвлкмдпуяыьгзбії", "жшщчйцхюэфъёєґђћјљњџў")
_ALPHABETS = (
    *((codec, *_CYRILLIC) for codec in ("cp1251", "koi8-r", "cp866", "iso8859-5", "mac-cyrillic", "cp855")),
    ("cp1253", "αοιετσνηυρπκμλωςάίόέήύ", "βγδζθξφχψώ"),
    ("cp1255", "ויהלארתבשמנםקדעחפ", "גזטכךןסףצץ"),
    ("cp1256", "اليمونترةبدسعفقكأه", "حجشصضطظغذزخثإآىئؤء"),
    ("cp874", "านรอกเงมยลวดทสตะปบคหแจพช", "ขฉฎฏฐณธผฝภศษฬฮโใไ"),
)
"""Alphabets: their code page, letters that are frequent, and the others."""
_WESTERN = (
    "äöüß", "àâçéèêëîïôùûœ", "áéíóúñüªº¿¡", "ãáâàçéêíóôú", "åäöøæé", "àèéìòù", "áðéíóúýþæö", "áàéèíïóòúüç",
)  # fmt: skip
_CENTRAL = ("áčďéěíňóřšťúůýž", "ąćęłńóśźż", "áéíóöőúüű", "čćđšž", "ăâîşţ", "áäčďéíĺľňóôŕšťúýž")
_LATIN = (
    *((USUAL, letters, "") for letters in _WESTERN),
    *(
        (codec, letters, "")
        for letters in _CENTRAL
        for codec in ("cp1250", "iso8859-2", "cp852", "mac-latin2")
    ),
    *((codec, "çğıöşüâîûİ", "") for codec in ("cp1254", "cp857", "mac-turkish")),
    *(("cp1257", letters, "") for letters in ("ąčęėįšųūž", "āčēģīķļņšūž", "äöõüšž")),
    *((codec, letters, "") for letters in _WESTERN for codec in ("cp850", "mac-roman")),
    (USUAL, "", "".join(_WESTERN)),
)
"""The letters beyond ASCII of one language or some that are alike, the most common ones first."""
_SIGNS = "°§²³€£–—„“”‘’‚«»…·•×±µ№\u00a0\u00ad"  # noqa: RUF001
_RUN = re.compile(rb"[\x80-\xff]+")
_ASIAN_WORTH = 8
"""What a frequent character among thousands counts more than a letter of an alphabet."""


def guessed_charset(sample: bytes) -> str:
    """The code page in which a text is most likely one of a known language.

    charset-normalizer takes short French, Spanish and Swedish tables for Central European ones.
    """
    lines = b"\n".join(line for line in sample[: 1 << 20].splitlines() if not line.isascii())[:_GUESSED]
    runs = _RUN.findall(lines)
    if sum(len(run) for run in runs if len(run) > 2) * 2 > sum(map(len, runs)):
        found = [(_likelihood(lines, *each), each[0]) for each in _ALPHABETS]
        found += [(_ASIAN_WORTH * _likelihood(lines, *each, ""), each[0]) for each in _ASIAN.items()]
        likely, name = max(found, key=itemgetter(0))
        if likely >= 0.5:
            return name
    return max(_LATIN, key=lambda each: _likelihood(lines, *each))[0]


def _likelihood(sample: bytes, codec: str, common: str, others: str) -> float:
    """Return which share of the characters beyond ASCII a language has; no word has a capital inside."""
    worth = dict.fromkeys(others + others.upper(), 0.8)
    worth |= dict.fromkeys(common + common.upper() + _SIGNS, 1.0)
    beyond, total, before = 0, 0.0, " "
    for sign in sample.decode(codec, "replace"):
        if sign > "\x7f":
            beyond += 1
            if not sign.isupper():
                total += worth.get(sign, 0.0)
            elif not before.islower():
                total += worth.get(sign, 0.0) * (0.97 if before.isupper() else 1.0)
        before = sign
    return total / beyond if beyond else 0.0


def decoded(content: bytes, encoding: str) -> str:
    """The text without its mark; what cannot be decoded is shown as `\\xNN`."""
    return content.decode(encoding, "backslashreplace").removeprefix("\ufeff")


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
    """Return the codec of a label that was read as ASCII, so that it is not UTF-16."""
    name = believed_charset(label.decode("ascii", "replace").strip())
    return "utf-8" if name is not None and name.startswith("utf-16") else name
