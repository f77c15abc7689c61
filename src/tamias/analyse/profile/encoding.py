"""How text is encoded, by a ladder: byte order mark, valid UTF-8, the server's word, an older code page."""

import codecs
import io
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tamias.analyse.profile.limits import KIB, MIB, ProfileLimits, Watch
from tamias.analyse.profile.scratch import ScratchFolder
from tamias.content.charsets import declared_charset, marked_encoding

WESTERN = "cp1252"

_COMMON = {
    "cp950": "的一是不有人中大上國以要用為市區路鄉鎮縣號街段里村臺灣日月年時電話地址名稱水山公園資料",
    "gb18030": "的一是不有人中大上国以要用为市区路乡镇县号街段里村日月年时电话地址名称水山公园资料据",
    "cp932": "のにはをたがでてとしれさあいうるなもすりこだらまんく市区町村年月日県都",
    "euc_jp": "のにはをたがでてとしれさあいうるなもすりこだらまんく市区町村年月日県都",
    "cp949": "이다는에의가을를하고지사도로서기시구동리군면읍대한국년월일수정인",
    "cp1251": "оеаинтсрвлкмдпуяыьгзбОАИНСРВКМГ",
    "koi8-r": "оеаинтсрвлкмдпуяыьгзбОАИНСРВКМГ",
    "cp1253": "αοιετσνηυρπκμλωςάίόέήύΑΕΟΙ",
}
"""Of each code page of another script, characters that make up much of any text in it."""

_LEAST_COMMON = {name: 0.5 if name in ("cp1251", "koi8-r", "cp1253") else 0.1 for name in _COMMON}
"""The share of them in a text: an alphabet is short, and a list of names is not a usual text."""

_CENTRAL = ("cp1250", "iso8859-2")
_WESTERN_SIGN = re.compile(r"(?<=\w)[^\w\s'\u2019\u00ad\u2010-\u2015](?=\w)")
_RUN = re.compile(rb"[\x80-\xff]+")


def code_page(sample: bytes) -> str:
    """The name of the code page that a text is most likely in."""
    runs = _RUN.findall(sample)
    high = sum(map(len, runs))
    if high and sum(len(run) for run in runs if len(run) > 2) > high / 2:
        shares = {name: _share(sample, name) / _LEAST_COMMON[name] for name in _COMMON}
        best = max(shares, key=shares.__getitem__)
        if shares[best] >= 1:
            return best
    return _latin(sample, high)


def _share(sample: bytes, name: str) -> float:
    """How much of what is not ASCII is what one would expect; nothing, if too much cannot be decoded."""
    beyond = [sign for sign in sample.decode(name, "replace") if sign > "\x7f"]
    if not beyond or beyond.count("\ufffd") * 50 > len(beyond):
        return 0.0
    return sum(sign in _COMMON[name] for sign in beyond) / len(beyond)


def _latin(sample: bytes, high: int) -> str:
    """A sign such as ³ or ¿ within words is a letter of another code page."""
    odd = _odd(sample, WESTERN)
    if odd * 20 < high or odd < 3:
        return WESTERN
    best = min(_CENTRAL, key=lambda name: _odd(sample, name))
    return best if _odd(sample, best) * 4 < odd else WESTERN


def _odd(sample: bytes, name: str) -> int:
    text = sample.decode(name, "replace")
    return sum(sign > "\x7f" for sign in _WESTERN_SIGN.findall(text))


CHUNK = MIB
SMALL = 64 * KIB
"""Bytes of a file whose text stays in memory."""
_SAMPLE = 256 * 1024
_SILENT = frozenset({"utf-8", "ascii", "iso8859-1", "cp1252"})
"""What servers say of everything; the bytes know better."""


class Encoding(msgspec.Struct, frozen=True, kw_only=True):
    """How a file is encoded, and how much of it cannot be so."""

    name: str
    mark: int = 0
    """Bytes of the byte order mark."""
    faults: bool = False
    """Some bytes do not fit; they become U+FFFD."""


class Utf8Text(msgspec.Struct, frozen=True, kw_only=True):
    """A file brought to UTF-8. A small one stays in memory until somebody asks for the file."""

    folder: ScratchFolder
    name: str
    """Of the file in the folder."""
    content: bytes | None
    """All of it, if it is small."""
    encoding: Encoding
    lines: int
    longest: int
    """Bytes of the longest line."""
    complete: bool
    """False where the file is longer than the limit; the last line is then left out."""

    def file(self) -> Path:
        """Where it stands; a small one is written there now."""
        path = self.folder.path / self.name
        if self.content is not None:
            path.write_bytes(self.content)
        return path


def found_encoding(path: Path, told_type: str | None, most: int) -> Encoding:
    """The encoding of the first `most` bytes of a file."""
    with path.open("rb") as file:
        head = file.read(_SAMPLE)
    marked, length = marked_encoding(head)
    if marked is not None:
        return Encoding(name=marked, mark=length)
    if wide := _without_mark(head):
        return Encoding(name=wide)
    if len(head) < _SAMPLE and head.isascii():
        return Encoding(name="utf-8")
    faults, sequences, first = _utf8_faults(path, most)
    if faults * 10 <= sequences:
        return Encoding(name="utf-8", faults=faults > 0)
    sample = head if first < len(head) else _around(path, first)
    return Encoding(name=_told(told_type, sample) or code_page(sample))


def as_utf8(
    path: Path, folder: ScratchFolder, name: str, told_type: str | None, limits: ProfileLimits, watch: Watch
) -> Utf8Text:
    """Copies a file as UTF-8 without mark or NULs, with plain line ends; may raise `ProfileLimit`."""
    encoding = found_encoding(path, told_type, limits.bytes)
    size = path.stat().st_size
    complete = size <= limits.bytes
    held = io.BytesIO() if complete and size <= SMALL else None
    lines, longest, run, last = 0, 0, 0, b""
    with held or (folder.path / name).open("wb") as copy:
        for chunk in _decoded(path, encoding, limits.bytes):
            watch.check()
            copy.write(chunk)
            pieces = chunk.split(b"\n")
            longest = max(longest, run + len(pieces[0]), *map(len, pieces[1:-1]), 0)
            run = len(pieces[-1]) + (run if len(pieces) == 1 else 0)
            lines += len(pieces) - 1
            last = chunk or last
        content = None if held is None else held.getvalue()
    if not complete:
        _drop_last_line(folder.path / name, run)
    unended = complete and bool(last) and not last.endswith(b"\n")
    return Utf8Text(
        folder=folder,
        name=name,
        content=content,
        encoding=encoding,
        lines=lines + unended,
        longest=max(longest, run),
        complete=complete,
    )


def plain_utf8(content: bytes) -> Utf8Text | None:
    """The same of a small file in memory; None where more than its bytes must be looked at."""
    marked, length = marked_encoding(content)
    if len(content) > SMALL or marked not in (None, "utf-8") or _without_mark(content):
        return None
    try:
        plain = _plain(content[length:].decode())
    except UnicodeDecodeError:
        return None
    lines = plain.split(b"\n")
    return Utf8Text(
        folder=ScratchFolder(None),
        name="",
        content=plain,
        encoding=Encoding(name="utf-8", mark=length),
        lines=len(lines) - (not lines[-1]),
        longest=max(map(len, lines)),
        complete=True,
    )


def _decoded(path: Path, encoding: Encoding, most: int) -> Iterator[bytes]:
    """UTF-8 in chunks. A line end is one byte, so that a carriage return is never half of one."""
    decoder = codecs.getincrementaldecoder(encoding.name)("replace")
    held = ""
    for chunk in _chunks(path, most, encoding.mark):
        text = held + decoder.decode(chunk)
        held = "\r" if text.endswith("\r") else ""
        yield _plain(text[: len(text) - len(held)])
    yield _plain(held + decoder.decode(b"", final=True))


def _plain(text: str) -> bytes:
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    return text.encode("utf-8", "replace")


def _chunks(path: Path, most: int, start: int = 0) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(start)
        left = most - start
        while left > 0 and (chunk := file.read(min(CHUNK, left))):
            left -= len(chunk)
            yield chunk


def _drop_last_line(path: Path, size: int) -> None:
    with path.open("rb+") as file:
        file.truncate(max(0, path.stat().st_size - size))


def _without_mark(head: bytes) -> str | None:
    """UTF-16 shows by the NUL beside each character of a European text."""
    nuls = head.count(0)
    if nuls * 4 < len(head) or len(head) < 4:
        return None
    if head[1::2].count(0) > 0.9 * nuls:
        return "utf-16-le"
    return "utf-16-be" if head[::2].count(0) > 0.9 * nuls else None


def _utf8_faults(path: Path, most: int) -> tuple[int, int, int]:
    """Faults, characters beyond ASCII, and where the first fault is about."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    faults, beyond, place, first = 0, 0, 0, -1
    for chunk in _chunks(path, most):
        if not chunk.isascii() or decoder.getstate()[0]:
            text = decoder.decode(chunk)
            wrong = text.count("\ufffd") - chunk.count(b"\xef\xbf\xbd")
            first = place if wrong and first < 0 else first
            faults += wrong
            beyond += _beyond_ascii(text) - wrong
        place += len(chunk)
    return faults, beyond, first


def _beyond_ascii(text: str) -> int:
    return len(text) - len(text.encode("ascii", "ignore"))


def _around(path: Path, place: int) -> bytes:
    with path.open("rb") as file:
        file.seek(place)
        chunk = file.read(CHUNK)
    start = next((at for at, byte in enumerate(chunk) if byte > 127), 0)
    return chunk[start : start + _SAMPLE]


def _told(told_type: str | None, sample: bytes) -> str | None:
    """The server's charset, if it says more than the usual and is not contradicted."""
    name = declared_charset(told_type)
    if name is None or name in _SILENT or name.startswith("utf"):
        return None
    try:
        codecs.getincrementaldecoder(name)("strict").decode(sample)
    except UnicodeError:
        return None
    return name
