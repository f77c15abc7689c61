"""The heads of WARC records (1.1) and of the HTTP messages in them. Pure.

Bodies are kept after transfer and content coding; headers that would lie about them are renamed.
"""

import re
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from urllib.parse import urlsplit

from tamias.model.capture import Capture, Hop

Fields = Sequence[tuple[str, str]]

NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
SAME_PAYLOAD = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"

HTTP_RESPONSE = "application/http; msgtype=response"
HTTP_REQUEST = "application/http; msgtype=request"
FIELDS = "application/warc-fields"

_ORIGINAL = "X-Archive-Orig-"
_CODINGS = frozenset({"content-encoding", "transfer-encoding"})
_NO_BODY = frozenset({204, 304})
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]+")
_NO_NAME = re.compile(r"[\x00-\x20:\x7f]+")


def record_head(fields: Fields) -> bytes:
    """The head of a record, up to the empty line."""
    return b"WARC/1.1\r\n" + header_lines(fields) + b"\r\n"


def header_lines(fields: Iterable[tuple[str, str]]) -> bytes:
    """Header lines. No value can end its line, whatever a server sent."""
    lines = []
    for name, value in fields:
        cleaned = _NO_NAME.sub("-", name).strip("-")
        if cleaned:
            lines.append(f"{cleaned}: {_CONTROL.sub(' ', value).strip()}\r\n")
    return "".join(lines).encode("utf-8", "replace")


def warc_fields(fields: Fields) -> bytes:
    """The block of a warcinfo or metadata record."""
    return header_lines((name, value) for name, value in fields if value)


def request_block(url: str, sent: Fields, posted: bytes | None = None) -> bytes:
    """A request as it was sent, as far as we know: the fetcher keeps no copy of it. A POST has a body."""
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    host = parts.netloc.rpartition("@")[2]
    method = "GET" if posted is None else "POST"
    line = f"{method} {_CONTROL.sub('', target)} HTTP/1.1\r\n".encode()
    return line + _http_lines([("Host", host), *sent]) + (posted or b"")


def response_head(hop: Hop, stored: int | None) -> bytes:
    """The head of an answer; `stored` is the length of the body in the record, None when none is kept."""
    try:
        phrase = HTTPStatus(hop.status).phrase
    except ValueError:
        phrase = ""
    line = f"HTTP/1.1 {hop.status} {phrase}\r\n".encode()
    return line + _http_lines(_true_headers(hop, stored))


def is_truncated(hop: Hop, stored: int | None) -> bool:
    """Return whether there was a body, or may have been, that is not in the record."""
    return stored is None and hop.status not in _NO_BODY and hop.header("content-length") != "0"


def metadata_fields(capture: Capture) -> Fields:
    """Return what is known of a capture beyond its messages."""
    return [
        ("outcome", capture.outcome.word),
        ("reason", capture.reason),
        ("requestedUrl", "" if capture.url == capture.final_url else capture.url),
        ("fetchTimeMs", str(capture.ended_at - capture.started_at)),
        ("wireBytes", str(capture.wire_bytes)),
    ]


def _true_headers(hop: Hop, stored: int | None) -> Iterable[tuple[str, str]]:
    if hop.status in _NO_BODY:
        return hop.headers
    length = str(stored or 0)
    declared = hop.header("content-length")
    headers = [_renamed(name, value, length) for name, value in hop.headers]
    if declared is not None and declared != length:
        headers.append(("Content-Length", length))
    return headers


def _renamed(name: str, value: str, length: str) -> tuple[str, str]:
    key = name.lower()
    if key in _CODINGS or (key == "content-length" and value != length):
        return _ORIGINAL + name, value
    return name, value


def _http_lines(headers: Iterable[tuple[str, str]]) -> bytes:
    """Header values are bytes that were read as Latin-1."""
    lines = header_lines(headers).decode()
    return (lines + "\r\n").encode("latin-1", "replace")
