"""Captures made of the records of a WARC file: bodies decoded and spooled, times as recorded."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import BinaryIO

import msgspec

from tamias.features.imports.inputs import WarcInput
from tamias.features.warc.messages import BadMessage, MessageBody, MessageHead, read_head
from tamias.features.warc.records import DamagedRecord, WarcBlock, warc_blocks
from tamias.features.warc.warc_files import read_fields
from tamias.fetch.multi import REDIRECTS, Verdict, failed, of_status
from tamias.fetch.transfer import Spool
from tamias.model.capture import Body, Capture, Hop, Outcome
from tamias.model.errors import UrlError
from tamias.model.url import fetch_url, resolve, without_password

REMEMBERED = 100_000
"""Records that a later one may refer to."""
MOST_INFO = 64 * 1024
"""Of a warcinfo or request record that is read."""
SPOOL_MEMORY = 1 << 20
"""Bytes of a body that are held in memory."""
_SCHEMES = ("http://", "https://", "ftp://")
_FIRST_YEAR = 1990
_DAY_MS = 86_400_000
_NOT_MODIFIED = "server-not-modified"


class ImportedCapture(msgspec.Struct, kw_only=True):
    """A capture of another crawler."""

    capture: Capture
    agent: str
    """The User-Agent that was sent, or the program, as far as the file says."""
    problems: list[str]
    offset: int
    """Of its record."""


class _Skipped(Exception):
    """A record that is no capture: told why, unless that goes without saying."""


class CaptureReader:
    """Reads files one after another; a record may refer to one of an earlier file."""

    def __init__(self, spool: str, max_bytes: int, now: int, report: Callable[[str, int, str], None]) -> None:
        """Spool bodies into a folder; `report` is told of problems: the file, the offset, and what."""
        self._spool = spool
        self._max_bytes = max_bytes
        self._latest = now + _DAY_MS
        self._report = report
        self._records: OrderedDict[str, tuple[WarcInput, int]] = OrderedDict()
        self._program = ""

    def captures(self, source: WarcInput) -> Iterator[ImportedCapture]:
        """Yield those of a file, in its order. Their spooled bodies belong to the caller."""
        self._program = ""
        try:
            file = source.open()
        except OSError as error:
            self._report(source.name, 0, f"it cannot be opened: {error}")
            return
        with closing(file):
            try:
                yield from self._with_requests(source, self._blocks(source, file))
            except OSError as error:
                self._report(source.name, 0, f"it is read no further: {error}")

    def _blocks(self, source: WarcInput, file: BinaryIO) -> Iterator[WarcBlock]:
        def report(offset: int, what: str) -> None:
            self._report(source.name, offset, what)

        if source.offsets is None:
            yield from warc_blocks(file, report)
            return
        for offset in source.offsets():
            yield from _one(warc_blocks(file, report, offset))

    def _with_requests(self, source: WarcInput, blocks: Iterator[WarcBlock]) -> Iterator[ImportedCapture]:
        """A response waits for the record behind it, which may be its request; or that came before it."""
        waiting: tuple[ImportedCapture, str] | None = None
        before: tuple[str, tuple[str, str]] | None = None
        for block in blocks:
            kind = block.fields.get("warc-type", "").lower()
            target = block.fields.get("warc-target-uri", "")
            if kind == "request":
                request = _read_request(block)
                if waiting is not None and waiting[1] == target:
                    yield from _answering(waiting[0], request)
                    waiting = None
                else:
                    before = target, request
                continue
            if waiting is not None:
                yield waiting[0]
                waiting = None
            found = self._capture(source, block, kind)
            if found is not None and before is not None and before[0] == target:
                yield from _answering(found, before[1])
            elif found is not None:
                waiting = found, target
            before = None
        if waiting is not None:
            yield waiting[0]

    def _capture(self, source: WarcInput, block: WarcBlock, kind: str) -> ImportedCapture | None:
        try:
            if kind == "warcinfo":
                self._program = _program(block)
            if kind in ("response", "resource", "revisit"):
                return self._read(source, block, kind)
        except DamagedRecord:
            pass  # told by whoever reads the file
        except (_Skipped, BadMessage, UrlError) as error:
            if str(error):
                self._report(source.name, block.offset, str(error))
        return None

    def _read(self, source: WarcInput, block: WarcBlock, kind: str) -> ImportedCapture:
        url = _url(block)
        at = self._time(block)
        problems: list[str] = []
        if kind == "resource":
            declared = block.fields.get("content-type", "")
            head = MessageHead(
                226 if url.startswith("ftp:") else 200, (("Content-Type", declared),) if declared else ()
            )
            body, verdict = self._body(MessageBody(block, None), problems, of_status(200, conditional=True))
        else:
            if "http" not in block.fields.get("content-type", "application/http").lower():
                raise _Skipped("the record holds no HTTP response")
            head, body, verdict = self._response(block, kind, problems)
        if kind != "revisit":
            self._remember(source, block)
        if block.cut and body is None:
            problems.append("the record is cut")
            verdict = failed("the record is cut")
        hop = Hop(
            url=url,
            status=head.status,
            address=block.fields.get("warc-ip-address", "")[:64],
            location=_location(head, url),
            headers=head.headers,
        )
        where = (
            f"imported from {source.name}, {block.fields.get('warc-record-id', 'a record without id')[:200]}"
        )
        capture = Capture(
            url=url,
            started_at=at,
            ended_at=at,
            outcome=verdict.outcome,
            reason=f"{verdict.reason}; {where}",
            hops=(hop,),
            body=body,
            wire_bytes=block.length,
        )
        return ImportedCapture(capture=capture, agent=self._program, problems=problems, offset=block.offset)

    def _response(
        self, block: WarcBlock, kind: str, problems: list[str]
    ) -> tuple[MessageHead, Body | None, Verdict]:
        head = read_head(block) if kind == "response" or block.length else None
        if kind == "revisit":
            if _NOT_MODIFIED in block.fields.get("warc-profile", "") or (head and head.status == 304):
                head = MessageHead(304, head.headers if head else ())
                return head, None, of_status(304, conditional=True)
            return self._revisited(block, head, problems)
        assert head is not None
        verdict = _verdict(head)
        if verdict.outcome is not Outcome.OK or head.status in REDIRECTS:
            return head, None, verdict
        body, verdict = self._body(MessageBody(block, head), problems, verdict)
        return head, body, verdict

    def _revisited(
        self, block: WarcBlock, head: MessageHead | None, problems: list[str]
    ) -> tuple[MessageHead, Body | None, Verdict]:
        """The body of the record that a revisit refers to, with the headers of the revisit."""
        names = [block.fields.get(name, "") for name in ("warc-refers-to", "warc-payload-digest")]
        known = next((self._records[name] for name in names if name in self._records), None)
        if known is None:
            raise _Skipped("it refers to a record that was not found before it; import both together")
        source, offset = known
        with closing(source.open()) as file:
            for original in _one(warc_blocks(file, lambda _offset, _what: None, offset)):
                stored = (
                    read_head(original)
                    if original.fields.get("warc-type", "").lower() == "response"
                    else MessageHead(200, ())
                )
                body, verdict = self._body(MessageBody(original, stored), problems, _verdict(head or stored))
                # What is said of codings is about the body as it stands there.
                return head or stored, body, verdict
        raise _Skipped("the record that it refers to cannot be read")

    def _body(
        self, payload: MessageBody, problems: list[str], verdict: Verdict
    ) -> tuple[Body | None, Verdict]:
        """The body; None with another verdict where it is too large or cannot be decoded.

        One that is known to be damaged is suspicious.
        """
        spool = Spool(self._spool, SPOOL_MEMORY)
        size = 0
        try:
            for piece in payload.pieces():
                size += len(piece)
                if size > self._max_bytes:
                    return None, failed(f"larger than {self._max_bytes} bytes (limit fetch.max_bytes)")
                spool.write(piece)
            if damage := payload.damage(size):
                problems.append(damage)
                verdict = Verdict(Outcome.SKIPPED, f"suspect: {damage}")
            return spool.body(), verdict
        except BadMessage as error:
            problems.append(str(error))
            return None, failed(str(error))
        finally:
            spool.discard()

    def _remember(self, source: WarcInput, block: WarcBlock) -> None:
        for name in ("warc-record-id", "warc-payload-digest"):
            if key := block.fields.get(name):
                self._records.setdefault(key, (source, block.offset))
        while len(self._records) > REMEMBERED:
            self._records.popitem(last=False)

    def _time(self, block: WarcBlock) -> int:
        date = block.fields.get("warc-date", "")
        at = _milliseconds(date)
        if at is None:
            raise _Skipped(f"its WARC-Date is no time: {date[:100]!r}")
        if at > self._latest:
            raise _Skipped(f"its WARC-Date is in the future: {date[:100]}")
        return at


def capture_key(capture: Capture) -> bytes:
    """Return what makes a capture the same as another: address, time, status and body."""
    body = capture.body.sha256 if capture.body else ""
    return sha256(f"{capture.url}\n{capture.started_at}\n{capture.status}\n{body}".encode()).digest()


def _one(blocks: Iterator[WarcBlock]) -> Iterator[WarcBlock]:
    for block in blocks:
        yield block
        return


def _answering(found: ImportedCapture, request: tuple[str, str]) -> Iterator[ImportedCapture]:
    """Add the request to a capture. The response to a POST is not the content of its URL."""
    method, agent = request
    if method in ("GET", ""):
        found.agent = agent or found.agent
        yield found


def _read_request(block: WarcBlock) -> tuple[str, str]:
    """Return the method and the User-Agent of a request."""
    try:
        head = block.read(MOST_INFO).partition(b"\r\n\r\n")[0]
    except DamagedRecord:
        return "", ""
    method = head.partition(b" ")[0].decode("latin-1").upper()
    return method, read_fields(head).get("user-agent", "")[:1000]


def _program(block: WarcBlock) -> str:
    """Return who wrote the file: the User-Agent, or the software."""
    fields = read_fields(b"\n" + block.read(MOST_INFO))
    return (fields.get("http-header-user-agent") or fields.get("software") or "")[:1000]


def _url(block: WarcBlock) -> str:
    url = block.fields.get("warc-target-uri", "").strip().removeprefix("<").removesuffix(">")
    if not url.lower().startswith(_SCHEMES):
        raise _Skipped  # logs and the like, which crawlers keep beside captures
    return without_password(fetch_url(url))


def _verdict(head: MessageHead) -> Verdict:
    verdict = of_status(head.status, conditional=True)
    if head.status in REDIRECTS and head.header("location"):
        return Verdict(Outcome.OK, f"{head.status}, leads elsewhere")
    return verdict


def _location(head: MessageHead, url: str) -> str | None:
    if head.status not in REDIRECTS or not head.header("location"):
        return None
    try:
        return resolve(head.header("location"), url)
    except UrlError:
        return None


def _milliseconds(text: str) -> int | None:
    """Read a WARC-Date, or the 14 digits of a CDX; a leap second counts as the one before it."""
    text = text.strip().replace(":60", ":59")
    try:
        moment = datetime.fromisoformat(f"{text[:8]}T{text[8:]}" if text.isdigit() else text)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return None if moment.year < _FIRST_YEAR else since // timedelta(milliseconds=1)
