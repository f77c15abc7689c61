"""Captures made of the records of a WARC file: bodies decoded and spooled, times as recorded."""

import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import islice
from typing import BinaryIO

import msgspec

from tamias.content.containers.documents import discard
from tamias.features.imports.inputs import WarcInput
from tamias.features.warc.index import WarcExtent
from tamias.features.warc.messages import BadMessage, MessageBody, MessageHead, stored_head
from tamias.features.warc.records import MOST_PASSED, DamagedRecord, WarcBlock, warc_blocks
from tamias.features.warc.warc_files import read_fields, target_of
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
SCHEMES = ("http://", "https://", "ftp://")
_FIRST_YEAR = 1990
_DAY_MS = 86_400_000
_NOT_MODIFIED = "server-not-modified"
_LEVEL = 3
NAMES = ("warc-record-id", "warc-concurrent-to", "warc-refers-to")
"""Fields that name a record, or others that it belongs to."""


class ImportedCapture(msgspec.Struct, kw_only=True):
    """A capture of another crawler."""

    capture: Capture
    agent: str
    """The User-Agent that was sent, or the program, as far as the file says."""
    problems: list[str]
    offset: int
    """Of its record."""


class ImportedRecord(msgspec.Struct, kw_only=True):
    """A record of another crawler, and the capture that was made of it if it is one."""

    kind: str
    target: str
    at: int
    names: frozenset[str]
    """Its own name and those of records that it belongs to."""
    key: bytes = b""
    """What makes it the same as another: a digest of all of it."""
    member: Body | None = None
    """All of it as a member of gzip; None where it is not whole, or too long."""
    extent: WarcExtent | None = None
    """The response as it is indexed; where it stands is set when it is written."""
    refers_to: tuple[str, int] | None = None
    """Address and time of the response whose body a revisit has, where that was not read."""
    capture: ImportedCapture | None = None
    is_postponed: bool = False
    """Whether it refers to a record that was not found before it, and may be later."""
    request: tuple[str, str] | None = None
    """Method and User-Agent of a request."""


class _NotYet(Exception):
    """A revisit of a record that was not found before it."""


_Answer = tuple[MessageHead, Body | None, Verdict, str | None]


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
        self.has_postponed = False
        """Whether the file that was read last has revisits of records that were not found before them."""

    def records(self, source: WarcInput, *, postponed: bool = False) -> Iterator[ImportedRecord]:
        """Yield those of a file, in its order; or the revisits that were `postponed` when it was read before.

        What they have in files belongs to the caller.
        """
        self._program, self.has_postponed, self._takes_all = "", False, postponed
        try:
            file = source.open()
        except OSError as error:
            self._report(source.name, 0, f"it cannot be opened: {error}")
            return
        with closing(file):
            try:
                blocks = self._blocks(source, file)
                wanted = (each for each in blocks if not postponed or _kind(each) == "revisit")
                yield from _with_requests(self._record(source, block) for block in wanted)
            except OSError as error:
                self._report(source.name, 0, f"it is read no further: {error}")

    def _blocks(self, source: WarcInput, file: BinaryIO) -> Iterator[WarcBlock]:
        def report(offset: int, what: str) -> None:
            self._report(source.name, offset, what)

        if source.offsets is None:
            yield from warc_blocks(file, report)
            return
        for offset in source.offsets:
            yield from islice(warc_blocks(file, report, offset), 1)

    def _record(self, source: WarcInput, block: WarcBlock) -> ImportedRecord:
        kind = _kind(block)
        found = ImportedRecord(
            kind=kind,
            target=target_of(block.fields),
            at=_milliseconds(block.fields.get("warc-date", "")) or 0,
            names=frozenset(filter(None, map(block.fields.get, NAMES[:2] if kind == "revisit" else NAMES))),
        )
        digest, packing = sha256(block.head), zlib.compressobj(_LEVEL, zlib.DEFLATED, 31)
        with closing(Spool(self._spool, SPOOL_MEMORY)) as spool:
            too_long = block.length > self._max_bytes + MOST_PASSED
            if not too_long:

                def copy(piece: bytes) -> None:
                    digest.update(piece)
                    spool.write(packing.compress(piece))

                spool.write(packing.compress(block.head))
                block.copy = copy
            self._examine(source, block, found)
            if found.is_postponed:
                return found
            if too_long:
                problem = f"the record of {block.length} bytes is too long to be kept (limit fetch.max_bytes)"
                self._report(source.name, block.offset, problem)
                return found
            with suppress(DamagedRecord):  # told by whoever reads the file
                while block.read():
                    continue
            if not block.left and not block.cut:
                spool.write(packing.compress(b"\r\n\r\n") + packing.flush())
                found.key, found.member = digest.digest()[:16], spool.body()
        return found

    def _examine(self, source: WarcInput, block: WarcBlock, found: ImportedRecord) -> None:
        try:
            if found.kind == "warcinfo":
                self._program = _program(block)
            elif found.kind == "request":
                found.request = _read_request(block)
            elif found.kind in ("response", "resource", "revisit"):
                self._read(source, block, found)
        except DamagedRecord:
            pass  # told by whoever reads the file
        except _NotYet:
            found.is_postponed = self.has_postponed = True
        except (_Skipped, BadMessage, UrlError) as error:
            if str(error):
                self._report(source.name, block.offset, str(error))

    def _read(self, source: WarcInput, block: WarcBlock, record: ImportedRecord) -> None:
        if not record.target.lower().startswith(SCHEMES):
            raise _Skipped  # logs and the like, which crawlers keep beside captures
        url = without_password(fetch_url(record.target))
        at = self._time(block)
        problems: list[str] = []
        head = stored_head(block)
        if record.kind == "resource" and url.startswith("ftp:"):
            head = MessageHead(226, head.headers)
        extent = WarcExtent(
            file="",
            position=0,
            length=0,
            url=url,
            captured_at=at,
            status=head.status,
            revisit=record.kind == "revisit",
            declared_type=head.header("content-type") or None,
        )
        record.extent = extent
        if record.kind == "revisit":
            named = (
                block.fields.get("warc-refers-to-target-uri", ""),
                block.fields.get("warc-refers-to-date", ""),
            )
            record.refers_to = named[0], _milliseconds(named[1]) or 0
        head, body, verdict, digest = self._response(block, head, record.kind, problems)
        record.extent = msgspec.structs.replace(extent, status=head.status, sha256=digest)
        if record.kind != "revisit":
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
        record.capture = ImportedCapture(
            capture=capture, agent=self._program, problems=problems, offset=block.offset
        )

    def _response(self, block: WarcBlock, head: MessageHead, kind: str, problems: list[str]) -> _Answer:
        """The response, and the SHA-256 of its body where that could be read."""
        if kind != "revisit":
            verdict = of_status(200, conditional=True) if kind == "resource" else _verdict(head)
            return self._body(head, MessageBody(block, head), problems, verdict)
        if _NOT_MODIFIED in block.fields.get("warc-profile", "") or head.status == 304:
            return MessageHead(304, head.headers), None, of_status(304, conditional=True), None
        return self._revisited(block, head if block.length else None, problems)

    def _revisited(self, block: WarcBlock, head: MessageHead | None, problems: list[str]) -> _Answer:
        """The body of the record that a revisit refers to, with the headers of the revisit."""
        names = [block.fields.get(name, "") for name in ("warc-refers-to", "warc-payload-digest")]
        known = next((self._records[name] for name in names if name in self._records), None)
        if known is None and not self._takes_all:
            raise _NotYet
        if known is None:
            raise _Skipped("it refers to a record that was not found before it; import both together")
        source, offset = known
        with closing(source.open()) as file:
            for original in islice(warc_blocks(file, lambda _offset, _what: None, offset), 1):
                stored = stored_head(original)
                # What is said of codings is about the body as it stands there.
                return self._body(
                    head or stored, MessageBody(original, stored), problems, _verdict(head or stored)
                )
        raise _Skipped("the record that it refers to cannot be read")

    def _body(
        self, head: MessageHead, payload: MessageBody, problems: list[str], verdict: Verdict
    ) -> _Answer:
        """The body of a document; None with another verdict where it is too large or cannot be decoded.

        One that is known to be damaged is suspicious.
        """
        is_document = verdict.outcome is Outcome.OK and head.status not in REDIRECTS
        size, digest = 0, sha256()
        with closing(Spool(self._spool, SPOOL_MEMORY)) as spool:
            try:
                for piece in payload.pieces():
                    size += len(piece)
                    if size > self._max_bytes:
                        too_large = failed(f"larger than {self._max_bytes} bytes (limit fetch.max_bytes)")
                        return head, None, too_large if is_document else verdict, None
                    digest.update(piece)
                    if is_document:
                        spool.write(piece)
            except BadMessage as error:
                if is_document:
                    problems.append(str(error))
                    verdict = failed(str(error))
                return head, None, verdict, digest.hexdigest()
            if not is_document:
                return head, None, verdict, digest.hexdigest()
            if damage := payload.damage(size):
                problems.append(damage)
                verdict = Verdict(Outcome.SKIPPED, f"suspect: {damage}")
            return head, spool.body(), verdict, digest.hexdigest()

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


def _kind(block: WarcBlock) -> str:
    return block.fields.get("warc-type", "").lower()


def _with_requests(records: Iterator[ImportedRecord]) -> Iterator[ImportedRecord]:
    """A response waits for the record behind it, which may be its request; or that came before it."""
    waiting: ImportedRecord | None = None
    before: ImportedRecord | None = None
    for each in records:
        if waiting is not None:
            if each.request is not None and each.target == waiting.target:
                _answer(waiting, each.request)
            yield waiting
            waiting = None
        if each.capture is None:
            before = each if each.request is not None else None
            yield each
            continue
        if before is not None and before.request is not None and before.target == each.target:
            _answer(each, before.request)
            yield each
        else:
            waiting = each
        before = None
    if waiting is not None:
        yield waiting


def _answer(found: ImportedRecord, request: tuple[str, str]) -> None:
    """Add the request to a capture. The response to a POST is not the content of its URL."""
    method, agent = request
    assert found.capture is not None
    if method in ("GET", ""):
        found.capture.agent = agent or found.capture.agent
    else:
        discard(found.capture.capture.body)
        found.capture = found.extent = None


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
