"""Fetches ftp and ftps addresses: files as they are, directories as lists in a form of our own.

Lists come in three forms, and become lines of JSON. Names are kept as they came, bytes that are no UTF-8 as
lone surrogates; whoever reads the lines judges them.
"""

import asyncio
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Literal, NamedTuple

import msgspec
import pycurl

from tamias.features.ftp.transfer import Errand, FtpAddress, FtpTransfer, Login, ftp_address
from tamias.fetch.credentials import HttpOptions
from tamias.fetch.multi import GIVEN_UP, Verdict, failed, of_trouble, refused
from tamias.fetch.transfer import Spool, disk_error
from tamias.model.capture import Body, Capture, Hop, Outcome, Request, Unreached
from tamias.model.cut import PRIVATE
from tamias.model.url import without_password
from tamias.protocols import Follow

LISTING = "application/x-ftp-listing+json"
"""Lines of JSON objects: `name`, `type` (`file` or `dir`), `size`, `modified`; or a `problem`, in words."""

_MOST_LINE = 8 * 1024
_DATE = r"(?:[^\W\d]\S{1,9}\s+\d{1,2}|\d{1,2}\.?\s+[^\W\d]\S{1,9})\s+(?:\d{1,2}:\d\d|\d{4})"
_UNIX = re.compile(
    rf"([dl-])[^\s/]{{9,10}}\s*(?:\S+\s+){{1,7}}?(\d{{1,18}})\s+(?:{_DATE}|\d{{4}}-\d\d-\d\d\s+\d\d:\d\d)\s(.+)"
)
_WINDOWS = re.compile(
    r"(?:\d\d-\d\d-\d\d(?:\d\d)?|\d{4}-\d\d-\d\d)\s+\d\d:\d\d(?:\s?[AaPp][Mm])?\s+"
    r"(?:<(DIR|JUNCTION|SYMLINKD?)>\s+|(\d{1,18}) )(.+)"
)
_NO_ENTRY = re.compile(r"total \d+$|[bcpsD]\S{9,10}\s")
_MODIFIED = re.compile(r"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(?:\.\d+)?", re.ASCII)
_HERE = frozenset({"cdir", "pdir"})


class DirectoryEntry(NamedTuple):
    """A name in a directory. A symbolic link is a file until a server opens it as a directory."""

    name: str
    type: Literal["file", "dir"]
    size: int | None = None
    modified: str | None = None
    """Only where the zone of the time is known, which plain lists do not tell."""


Found = DirectoryEntry | Literal["nothing"] | None
"""None is a line that cannot be read."""


class DirectoryListing(NamedTuple):
    """The entries of one directory."""

    entries: list[DirectoryEntry]
    unread: list[str]
    """Lines that could not be read."""

    def lines(self) -> Iterable[bytes]:
        """Return a line for each entry, by name, so that an unchanged directory is the same bytes."""
        yield from sorted(json.dumps(entry._asdict()).encode() + b"\n" for entry in self.entries)
        if self.unread:
            words = (
                f"{len(self.unread)} lines of the list cannot be read, the first: {self.unread[0][:200]!r}"
            )
            yield json.dumps({"problem": words}).encode() + b"\n"


class TooLong(Exception):
    """A directory holds more entries than may be read."""


def listing(raw: bytes, form: Callable[[str], Found], most: int) -> DirectoryListing:
    """Reads a list of that form. Raises `TooLong` when it has more than `most` entries."""
    found = DirectoryListing([], [])
    for line in raw.split(b"\n"):
        text = line.rstrip(b"\r").decode("utf-8", "surrogateescape")
        if not text:
            continue
        entry = form(text) if len(text) <= _MOST_LINE else None
        if isinstance(entry, DirectoryEntry):
            found.entries.append(entry)
        elif entry is None:
            found.unread.append(text)
        if len(found.entries) + len(found.unread) > most:
            raise TooLong
    return found


def machine_line(line: str) -> Found:
    """A line of MLSD (RFC 3659).

    >>> machine_line("type=file;size=3;modify=20240102030405; a b.nt")
    DirectoryEntry(name='a b.nt', type='file', size=3, modified='2024-01-02T03:04:05Z')
    """
    text, space, name = line.partition(" ")
    if not (space and name) or (text and not text.endswith(";")):
        return None
    facts = dict(fact.lower().partition("=")[::2] for fact in text.split(";") if fact)
    kind = facts.get("type", "file")
    if kind in _HERE:
        return "nothing"
    return DirectoryEntry(
        name, "dir" if kind == "dir" else "file", _size(facts.get("size")), _time(facts.get("modify"))
    )


def plain_line(line: str) -> Found:
    """A line of LIST, as Unix or Windows servers write it.

    >>> plain_line("drwxr-xr-x   3 ftp ftp    4096 Nov 15 12:07 dumps")
    DirectoryEntry(name='dumps', type='dir', size=None, modified=None)
    """
    unix = _UNIX.fullmatch(line)
    if unix is not None:
        return _unix_entry(*unix.groups())
    windows = _WINDOWS.fullmatch(line)
    if windows is not None:
        kind, size, name = windows.groups()
        return _plain_entry(name, "dir" if kind == "DIR" else "file", _size(size))
    return "nothing" if _NO_ENTRY.match(line) else None


def bare_line(line: str) -> Found:
    """A line of NLST: a name, and nothing about it."""
    return _plain_entry(line, "file", None)


def _unix_entry(kind: str, size: str, name: str) -> Found:
    if kind == "d":
        return _plain_entry(name, "dir", None)
    if kind == "l":
        return _plain_entry(name.partition(" -> ")[0], "file", None)
    return _plain_entry(name, "file", _size(size))


def _plain_entry(name: str, kind: Literal["file", "dir"], size: int | None) -> Found:
    return "nothing" if name in (".", "..") else DirectoryEntry(name, kind, size)


def _size(digits: str | None) -> int | None:
    return int(digits) if digits and len(digits) <= 18 and digits.isascii() and digits.isdigit() else None


def _time(digits: str | None) -> str | None:
    found = _MODIFIED.fullmatch(digits or "")
    return "{}-{}-{}T{}:{}:{}Z".format(*found.groups()) if found else None


_IDLE_SECONDS = 30
"""FTP servers have few seats, often one for each guest; none is kept for longer than this."""
_MOST_THREADS = 64
_CLOSED = "the fetcher was closed"


class FtpConnections:
    """Lends a handle to one attempt at a time, the one that is logged in there if it is free."""

    def __init__(self, options: HttpOptions, forbidden: Callable[[str], str | None]) -> None:
        self._options = options
        self._forbidden = forbidden
        self._threads = ThreadPoolExecutor(min(_MOST_THREADS, options.connections), "ftp")
        self._busy: set[FtpTransfer] = set()
        self._idle: dict[str, tuple[FtpTransfer, asyncio.TimerHandle]] = {}
        self._closed = False
        os.makedirs(options.spool_dir, mode=0o700, exist_ok=True)

    @contextmanager
    def lent(self, place: str) -> Iterator[FtpTransfer]:
        """A handle for this place; what it saw and its body are forgotten when the block ends."""
        transfer = self._taken(place)
        self._busy.add(transfer)
        try:
            yield transfer
        finally:
            self._busy.discard(transfer)
            self._give_back(place, transfer)

    async def run(self, transfer: FtpTransfer, asking: Callable[[], tuple[int, str]]) -> tuple[int, str]:
        """Carries out an errand in a thread, and never leaves it there: who is cancelled waits for it."""
        if self._closed:
            return GIVEN_UP, _CLOSED
        work = asyncio.get_running_loop().run_in_executor(self._threads, asking)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            transfer.give_up("cancelled")
            await asyncio.wait([work])
            raise

    def close(self) -> None:
        """Gives up what is under way and hangs up everywhere. May be called twice."""
        self._closed = True
        for transfer in self._busy:
            transfer.give_up(_CLOSED)
        for place in list(self._idle):
            self._taken(place).close()
        self._threads.shutdown(wait=False)

    def _taken(self, place: str) -> FtpTransfer:
        if place not in self._idle:
            return FtpTransfer(self._options, self._forbidden)
        transfer, timer = self._idle.pop(place)
        timer.cancel()
        return transfer

    def _give_back(self, place: str, transfer: FtpTransfer) -> None:
        if self._closed or transfer.stopped is not None or place in self._idle:
            transfer.close()
            return
        transfer.clear()
        timer = asyncio.get_running_loop().call_later(_IDLE_SECONDS, self._hang_up, place)
        self._idle[place] = (transfer, timer)

    def _hang_up(self, place: str) -> None:
        self._taken(place).close()


LOGIN_REPLIES = frozenset({332, 530, 532})
TLS_REPLIES = frozenset({234, 521, 522, 533, 534, 536})
"""When one is the last, TLS came to nothing, or does not protect data as the server wants (RFC 4217)."""

_TOO_MANY = re.compile(r"too many|maximum|limit|try (?:again )?later|busy|full", re.IGNORECASE)
_DENIED = re.compile(r"permission|denied|not (?:allowed|permitted)|forbidden", re.IGNORECASE)
_UNPRINTABLE = re.compile(r"[^\x20-\x7e]+")
_MOST_WORDS = 200


def of_reply(status: int, words: str) -> Verdict:
    """The verdict on a refusal: three digits, and words that only people agree on.

    A server says 530 to strangers and, some of them, when it is full; 550 to all that is not to be had.
    """
    reason = f"{status} {_UNPRINTABLE.sub(' ', words).strip()[:_MOST_WORDS]}".strip()
    if status in LOGIN_REPLIES:
        return failed(reason, retry=True) if _TOO_MANY.search(words) else refused(reason)
    if status == 550 and not _DENIED.search(words):
        return Verdict(Outcome.GONE, reason)
    return failed(reason, retry=400 <= status < 500)


_FORMS: tuple[tuple[Errand, Callable[[str], Found]], ...] = (
    (Errand.LIST_FOR_MACHINES, machine_line),
    (Errand.LIST, plain_line),
    (Errand.LIST_NAMES, bare_line),
)
_GUESTS = frozenset({"anonymous", "ftp"})
_REMEMBERED = 10_000
_NO_FILE = frozenset({pycurl.E_FTP_COULDNT_RETR_FILE, pycurl.E_REMOTE_FILE_NOT_FOUND})
_TLS_TROUBLES = frozenset({pycurl.E_SSL_CONNECT_ERROR, pycurl.E_USE_SSL_FAILED, pycurl.E_SSL_CIPHER})
_UNCONNECTED = frozenset({pycurl.E_COULDNT_CONNECT, pycurl.E_FTP_CANT_GET_HOST})
_UNREPLIED = frozenset(
    {pycurl.E_COULDNT_RESOLVE_HOST, pycurl.E_COULDNT_CONNECT, pycurl.E_SEND_ERROR, pycurl.E_RECV_ERROR,
     pycurl.E_GOT_NOTHING, pycurl.E_PEER_FAILED_VERIFICATION, *_TLS_TROUBLES}
)  # fmt: skip
"""Ends that the server's last reply does not explain."""


class FtpFetcher:
    """The fetcher of FTP servers. One for each event loop; ends with `close`."""

    schemes = frozenset({"ftp", "ftps"})

    def __init__(
        self,
        options: HttpOptions,
        *,
        forbidden: Callable[[str], str | None],
        now: Callable[[], int],
        retry_after: Callable[[str | None, int], int | None],
    ) -> None:
        """Take the arguments of every fetcher; FTP has no `retry_after`."""
        self._options = options
        self._now = now
        self._connections = FtpConnections(options, forbidden)
        self._passwords: dict[str, str] = {}
        self._without_tls: set[str] = set()
        self._without_mlsd: set[str] = set()

    async def fetch(self, request: Request, follow: Follow) -> Capture:
        """Fetch a file or a listing. A file that is in fact a directory redirects to itself with a slash.

        A password in the address is used, also for what is found under the same user name, and is nowhere
        in the capture. Raises `DiskFull` when there is no room for the body.
        """
        started_at, shown = self._now(), without_password(request.url)
        address = ftp_address(request.url)
        if address is None or request.body is not None or self._options.proxy:
            reason = "FTP servers are not asked through a proxy (fetch.proxy)"
            if address is None or request.body is not None:
                reason = "not a valid FTP URL"
            return Capture(
                url=shown, started_at=started_at, ended_at=started_at, outcome=Outcome.REFUSED, reason=reason
            )
        with self._connections.lent(address.place) as transfer:
            transfer.begin(msgspec.structs.replace(request, url=shown), started_at)
            verdict, body = await self._walk(transfer, address, follow)
            return transfer.captured(verdict, body, self._now())

    async def close(self) -> None:
        """Gives up what is under way and closes all connections."""
        self._connections.close()

    async def _walk(
        self, transfer: FtpTransfer, address: FtpAddress, follow: Follow
    ) -> tuple[Verdict, Body | None]:
        if not address.is_directory:
            verdict = await self._file(transfer, address)
            if verdict is not None:
                return verdict, transfer.body() if verdict.outcome is Outcome.OK else None
            address = address.as_directory()
            transfer.leads_to(address.shown)
            stop = await follow(address.shown)
            if stop is not None:
                return Verdict(stop.outcome, stop.reason, cut=stop.cut), None
        return await self._directory(transfer, address)

    async def _file(self, transfer: FtpTransfer, address: FtpAddress) -> Verdict | None:
        """Request a file; return None if it is a directory. After an OK the transfer holds the body."""
        if transfer.request.last_modified is not None:
            verdict = await self._look(transfer, address, transfer.request.last_modified)
            if verdict is not None:
                return verdict
        code, message = await self._ask(transfer, address, Errand.TAKE)
        _note(transfer)
        verdict = self._judge(transfer, code, message)
        if code not in _NO_FILE or transfer.status < 500:
            return verdict
        # Servers have the same words for what is not there and for what is no file.
        code, _ = await self._ask(transfer, address.as_directory(), Errand.ENTER)
        return None if code == pycurl.E_OK else verdict

    async def _look(self, transfer: FtpTransfer, address: FtpAddress, known: str) -> Verdict | None:
        """A verdict without a body: the file is as it was, or the server is not to be had."""
        code, message = await self._ask(transfer, address, Errand.LOOK)
        if code in _NO_FILE or (code == pycurl.E_OK and ("Last-Modified", known) not in transfer.headers()):
            return None
        _note(transfer)
        if code == pycurl.E_OK:
            return Verdict(Outcome.UNCHANGED, f"not modified since {known}")
        return self._judge(transfer, code, message)

    async def _directory(self, transfer: FtpTransfer, address: FtpAddress) -> tuple[Verdict, Body | None]:
        """The list, in the best form that the server has and we can read."""
        verdict = failed("list of the directory cannot be read")
        for errand, form in _FORMS:
            if errand is Errand.LIST_FOR_MACHINES and address.place in self._without_mlsd:
                continue
            code, message = await self._ask(transfer, address, errand)
            if code == pycurl.E_OK:
                listed = await self._listed(transfer, form)
                if listed is not None:
                    _note(transfer, ("Content-Type", LISTING))
                    return listed
            elif code == pycurl.E_FTP_COULDNT_RETR_FILE and transfer.status >= 500:
                # The directory is there, for it was entered: whatever this is, it is not gone.
                verdict = failed(of_reply(transfer.status, transfer.words).reason)
                if errand is Errand.LIST_FOR_MACHINES:
                    _remember(self._without_mlsd, address.place)
            else:
                verdict = self._judge(transfer, code, message)
                break
        _note(transfer)
        return verdict, None

    async def _listed(
        self, transfer: FtpTransfer, form: Callable[[str], Found]
    ) -> tuple[Verdict, Body | None] | None:
        """Request a listing; return None if it is in another form."""
        options, raw = self._options, _taken(transfer.body())
        try:
            found = await asyncio.to_thread(listing, raw, form, options.max_listing_entries)
        except TooLong:
            return failed(f"more entries than max_listing_entries ({options.max_listing_entries})"), None
        if found.unread and not found.entries:
            return None
        body = await asyncio.to_thread(_written, found, options)
        return Verdict(Outcome.OK, f"{transfer.status} list of {len(found.entries)} entries"), body

    async def _ask(self, transfer: FtpTransfer, address: FtpAddress, errand: Errand) -> tuple[int, str]:
        """Runs one errand; once more without TLS where it was only an offer, and led to nothing."""
        tls = address.place not in self._without_tls
        code, message = await self._ask_once(transfer, address, errand, tls=tls)
        spoilt = code in _TLS_TROUBLES or (code != pycurl.E_OK and transfer.status in TLS_REPLIES)
        if spoilt and tls and not address.is_secured:
            _remember(self._without_tls, address.place)
            code, message = await self._ask_once(transfer, address, errand, tls=False)
        return code, message

    async def _ask_once(
        self, transfer: FtpTransfer, address: FtpAddress, errand: Errand, *, tls: bool
    ) -> tuple[int, str]:
        login = self._login(address)
        asking = partial(transfer.ask, address, login, errand, tls=tls)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        ending = await self._connections.run(transfer, asking)
        transfer.seconds_left -= loop.time() - begun
        return ending

    def _login(self, address: FtpAddress) -> Login:
        if address.user is None or (address.user in _GUESTS and address.password is None):
            return Login("anonymous", self._options.contact or self._options.user_agent, is_secret=False)
        if address.password is not None:
            if len(self._passwords) >= _REMEMBERED:
                self._passwords.clear()
            self._passwords[address.place] = address.password
        return Login(address.user, self._passwords.get(address.place, ""), is_secret=True)

    def _judge(self, transfer: FtpTransfer, code: int, message: str) -> Verdict:
        if transfer.cut is not None:
            return failed(transfer.cut)
        if code == pycurl.E_OK:
            return Verdict(Outcome.OK, f"{transfer.status} {transfer.words}".strip())
        if code == GIVEN_UP:
            return failed(message, retry=True)
        if transfer.refusal is not None and code in _UNCONNECTED:
            return refused(transfer.refusal, PRIVATE)
        if code == pycurl.E_FILESIZE_EXCEEDED:
            return failed(f"body larger than max_bytes ({self._options.max_bytes})")
        if code == pycurl.E_OPERATION_TIMEDOUT and transfer.status != 421:
            limit = self._options.first_byte_timeout
            unreached = None if transfer.status else Unreached.UNKNOWN
            reason = f"no reply within {limit:g} s (first_byte_timeout)"
            return failed(reason, retry=True, unreached=unreached)
        if transfer.status == 421 or (transfer.status >= 300 and code not in _UNREPLIED):
            return of_reply(transfer.status, transfer.words)
        return of_trouble(transfer.trouble(code, message), self._options.connect_timeout)


def _note(transfer: FtpTransfer, *more: tuple[str, str]) -> None:
    """Adds the hop, if the server said anything at all."""
    if transfer.status:
        transfer.hops.append(
            Hop(
                url=transfer.url,
                status=transfer.status,
                headers=(*transfer.headers(), *more),
                address=transfer.address,
            )
        )


def _remember(places: set[str], place: str) -> None:
    if len(places) >= _REMEMBERED:
        places.clear()
    places.add(place)


def _taken(body: Body) -> bytes:
    if body.path is None:
        return body.data or b""
    with open(body.path, "rb") as file:
        os.unlink(body.path)
        return file.read()


def _written(found: DirectoryListing, options: HttpOptions) -> Body:
    spool = Spool(options.spool_dir, options.memory_bytes)
    try:
        for line in found.lines():
            spool.write(line)
        return spool.body()
    except OSError as error:
        raise disk_error(error, options.spool_dir) from error
    finally:
        spool.close()
