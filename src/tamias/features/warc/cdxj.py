"""CDXJ: one line for each answer in a WARC file, so that it can be found without reading the file."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote_to_bytes, urlsplit

import msgspec

MAX_LINE = 1 << 20
REVISIT = "warc/revisit"
_WWW = re.compile(r"www\d*\.")
_SLASHES = re.compile(r"/{2,}")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_UNESCAPING_ROUNDS = 10


class CdxjFields(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The fields of a line behind its key and time. Numbers are texts, as other programs write them."""

    url: str
    mime: str = ""
    """As told, without parameters; `REVISIT` for a record that refers to another."""
    status: str = ""
    digest: str = ""
    length: str
    offset: str
    filename: str

    @property
    def end(self) -> int:
        """The byte behind the record."""
        return int(self.offset) + int(self.length)


def mime_field(declared: str, *, is_revisit: bool) -> str:
    """Return the field `mime` for a declared media type."""
    return REVISIT if is_revisit else declared.partition(";")[0].strip().lower()


def line(entry: CdxjFields, timestamp: str) -> bytes:
    """A line; the timestamp has 14 digits."""
    return f"{surt(entry.url)} {timestamp} ".encode() + msgspec.json.encode(entry) + b"\n"


def timestamp(date: str) -> str:
    """The 14 digits of a WARC date.

    >>> timestamp("2023-11-14T22:13:20.123Z")
    '20231114221320'
    """
    return re.sub(r"\D", "", date)[:14]


def parsed(text: bytes) -> tuple[str, CdxjFields] | None:
    """The timestamp and the entry of a line; None where it is torn."""
    parts = text.split(b" ", 2)
    if len(parts) != 3 or not text.endswith(b"\n"):
        return None
    try:
        return parts[1].decode("ascii"), msgspec.json.decode(parts[2], type=CdxjFields)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def entries(path: Path) -> Iterator[tuple[str, CdxjFields]]:
    """The sound lines of a file, as far as they go."""
    if not path.exists():
        return
    with path.open("rb") as file:
        while text := file.readline(MAX_LINE):
            entry = parsed(text)
            if entry is None:
                return
            yield entry


def surt(url: str) -> str:
    """The key of a URL: its host from right to left, then the rest, in the form that readers of CDXJ expect.

    >>> surt("http://www.Example.org:80/A//B/?b=2&a=%2F#f"), surt("http://127.0.0.1:8080")
    ('org,example)/a/b?a=/&b=2', '1,0,0,127:8080)/')
    """
    parts = urlsplit(url)
    host = _WWW.sub("", parts.hostname or "", count=1) if _WWW.match(parts.hostname or "") else parts.hostname
    try:
        port = parts.port
    except ValueError:
        port = None
    place = ",".join(reversed((host or "").split(".")))
    if port is not None and port != _DEFAULT_PORTS.get(parts.scheme):
        place += f":{port}"
    path = _SLASHES.sub("/", _minimal(parts.path)).rstrip("/") or "/"
    query = "&".join(sorted(_minimal(parts.query).lower().split("&")))
    return f"{place}){path}{'?' + query if query else ''}".lower()


def _minimal(text: str) -> str:
    """Return a URL with only the escapes that it needs."""
    raw = text.encode("utf-8", "replace")
    for _ in range(_UNESCAPING_ROUNDS):
        plain = unquote_to_bytes(raw)
        if plain == raw:
            break
        raw = plain
    return "".join(chr(byte) if 0x20 < byte < 0x7F and byte not in b"#%" else f"%{byte:02x}" for byte in raw)
