"""Analyses documents in a supervised child process, which is started once, reused, and replaced when it
dies.

A document can cost its sandbox, never the worker. See docs/hostile-web.md for what is analysed here and why.

Between a worker and its sandbox go typed frames of bounded size over two pipes. An open file can go along
with an order: the sandbox has no way to open the worker's files by name. Nothing is unpickled: a sandbox
that a document has taken over can only say what stands here.
"""

import logging
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from tamias.crawl.analysis.analysers import ContextCache, most_unpacked
from tamias.crawl.analysis.extractor import (
    Extraction,
    NewDocument,
    ReadingState,
    StoredReading,
    TakeLinks,
    Wanting,
)
from tamias.crawl.sandbox.walls import lower_priority, niceness
from tamias.model.capture import Body, Capture
from tamias.model.errors import TamiasError
from tamias.model.finding import Worded, Words
from tamias.protocols import DocumentSink
from tamias.settings import Settings

MOST_FRAME = 64 << 20
"""Bytes of a frame: a body in memory, a piece of quads, or all that was found of a document."""
_LENGTH = struct.Struct(">I")
_READ = 1 << 20


class Plan(msgspec.Struct, frozen=True, tag=True):
    """The first thing a sandbox is told."""

    settings: Settings


class Job(msgspec.Struct, frozen=True, tag=True):
    """A document to be analysed; a large body is an open file that goes along."""

    capture: Capture
    kind: str | None
    most_bytes: int
    """That it may be unpacked to."""
    is_stored: bool = False
    """Whether the worker stores how far it was read."""
    start: ReadingState | None = None


class Context(msgspec.Struct, frozen=True, tag=True):
    """A JSON-LD context that was asked for; whether anybody has tried to get it."""

    data: bytes | None
    tried: bool


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The sandbox stands; `open` names the walls that this system did not let it build."""

    open: tuple[str, ...]


class Wrote(msgspec.Struct, frozen=True, tag=True):
    """A piece of N-Quads."""

    chunk: bytes


class Linked(msgspec.Struct, frozen=True, tag=True):
    """Links: references, their base and their kind."""

    references: list[str]
    base: str
    kind: str | None
    words: dict[str, Words] = {}
    """That they stand among, where somebody wants these."""


class Passed(msgspec.Struct, frozen=True, tag=True):
    """The reading position, sent after all quads before it."""

    reading: ReadingState


class WantsContext(msgspec.Struct, frozen=True, tag=True):
    """Asks for a context and waits for the answer."""

    address: str


class WantsMore(msgspec.Struct, frozen=True, tag=True):
    """The end of a document that wants contexts which nobody has tried to get."""

    addresses: list[str]


class DocumentEnd(msgspec.Struct, frozen=True, tag=True):
    """The end of a document."""

    found: Extraction


class Broke(msgspec.Struct, frozen=True, tag=True):
    """The end of a document at a fault of ours, or for want of memory."""

    fault: str
    memory: bool = False


Order = Plan | Job | Context
Answer = Ready | Wrote | Linked | Passed | WantsContext | WantsMore | DocumentEnd | Broke
_encoder = msgspec.msgpack.Encoder()
orders: msgspec.msgpack.Decoder[Order] = msgspec.msgpack.Decoder(Order)
answers: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)
T = TypeVar("T")


class FrameError(Exception):
    """The received bytes are not a frame of ours."""


class Frames:
    """An end of the pipes."""

    def __init__(self, incoming: int, outgoing: int, *, files_come: bool = False) -> None:
        """`files_come` along with messages where the incoming end is a socket."""
        self._incoming = incoming
        self._outgoing = outgoing
        self._buffer = bytearray()
        self._files_come = files_come
        self.files: list[int] = []
        """Descriptors that came; whoever takes one out closes it."""

    def send(self, message: Order | Answer, file: int | None = None) -> None:
        """Raises `FrameError` for what is too large, `OSError` when nobody reads any more."""
        content = _encoder.encode(message)
        if len(content) > MOST_FRAME:
            raise FrameError(f"more than {MOST_FRAME} bytes at once")
        rest = memoryview(_LENGTH.pack(len(content)) + content)
        if file is not None:
            with socket.socket(fileno=os.dup(self._outgoing)) as end:
                rest = rest[socket.send_fds(end, [rest], [file]) :]
        while rest:
            rest = rest[os.write(self._outgoing, rest) :]

    def receive(self, decoder: msgspec.msgpack.Decoder[T], seconds: float | None = None) -> T | None:
        """The next message; None when none came in time. `EOFError` at the end, `FrameError` for nonsense."""
        while (size := self._size()) is None:
            if not select.select([self._incoming], [], [], seconds)[0]:
                return None
            piece = self._read()
            if not piece:
                raise EOFError
            self._buffer += piece
        content = self._buffer[_LENGTH.size : size]
        del self._buffer[:size]
        try:
            return decoder.decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise FrameError(str(error)) from error

    def _read(self) -> bytes:
        if not self._files_come:
            return os.read(self._incoming, _READ)
        with socket.socket(fileno=os.dup(self._incoming)) as end:
            piece, files, _, _ = socket.recv_fds(end, _READ, 1)
        self.files += files
        return piece

    def _size(self) -> int | None:
        """Return the size of the first frame if it has arrived completely."""
        if len(self._buffer) < _LENGTH.size:
            return None
        size = int(_LENGTH.unpack_from(self._buffer)[0])
        if size > MOST_FRAME:
            raise FrameError(f"a frame of {size} bytes")
        return size + _LENGTH.size if len(self._buffer) >= size + _LENGTH.size else None

    def close(self) -> None:
        """Closes both pipes."""
        os.close(self._incoming)
        os.close(self._outgoing)


LOOK_SECONDS = 0.2
SILENCE_PART = 4
"""Times the processor seconds that a document may take without finding anything; asleep so long, it hangs."""
REUSABLE_MEMORY = 256 << 20
"""A sandbox that holds more after a document is replaced before the next."""
_PASSED_ON = ("PYTHON", "LANG", "LC_", "TMPDIR", "PATH", "LD_", "TZ", "COVERAGE", "VIRTUAL_ENV", "HOME")

_log = logging.getLogger(__name__)
Waiting = Callable[[], None]
IsOver = Callable[[float], bool]
"""Whether a document that has taken so many seconds of processor time makes room for another."""


class Died(Exception):
    """The sandbox came to its end over a document; the message says why, and names the limit."""


class _Over(Exception):
    """The document exceeded a limit, and what was written of it is removed."""


class MakeRoom(Exception):
    """The document gives way to others that wait for the sandbox and is read again later."""


class Sandbox:
    """Analyses as `Extractor` does, elsewhere. For one thread at a time."""

    def __init__(self, settings: Settings, contexts: ContextCache) -> None:
        self._settings = settings
        self._contexts = contexts
        self._child: Child | None = None
        self._is_over: IsOver = lambda _seconds: False
        self.spent = 0.0
        """Seconds of processor time that the last document has taken."""

    def lend(self, is_over: IsOver) -> None:
        """Prepare for the next document, which gives way to others when `is_over` says so."""
        self._is_over = is_over
        self.spent = 0.0

    def extract(
        self,
        capture: Capture,
        body: Body,
        new_document: NewDocument,
        take_links: TakeLinks,
        kind: str | None = None,
        stored: StoredReading | None = None,
    ) -> Extraction:
        """Analyse like `Extractor.extract`; if the sandbox dies, record the limit and drop all statements.

        `take_links` is called with nothing from time to time, so that it can end the waiting by raising.
        Raises `MakeRoom` when others wait and it has had its time.
        """
        child = self._child = self._child or Child(self._settings)
        sound = False
        found = Extraction()
        watch = partial(self._watch, child, child.cpu_seconds(), body.size, take_links)
        try:
            with new_document() as target:
                place = str(Path(body.path).parent) if body.path else tempfile.gettempdir()
                most = most_unpacked(self._settings, place)
                start = stored.start if stored else None
                sent = msgspec.structs.replace(capture, body=body)
                child.send(Job(sent, kind, most, stored is not None, start))
                found = self._followed(child, target, take_links, watch, found, stored)
                if found.limit is not None:
                    raise _Over
                found.extent = target.extent if found.quads else None  # before another document follows
            sound = True
        except Wanting:
            sound = True
            raise
        except _Over:
            sound = True
        except Died as death:
            found.limit, found.quads = str(death), 0
        finally:
            if not sound or child.used_up:
                self.close()
        return found

    def close(self) -> None:
        """Ends the child. The next document gets another."""
        child, self._child = self._child, None
        if child is not None:
            child.end()

    def _watch(self, child: "Child", before: float, size: int, take_links: TakeLinks) -> None:
        """Now and then while a document is read: ends it when it has had its time."""
        take_links((), "", None)
        self.spent = child.cpu_seconds() - before
        if self._is_over(self.spent):
            raise MakeRoom
        limits = self._settings.sandbox
        most = limits.cpu + limits.cpu_per_mb * size / 1e6
        if self.spent > most:
            raise child.killed(
                f"its analysis took {most:.0f} s of CPU time, too much for its size"
                " (limits sandbox.cpu, sandbox.cpu_per_mb)"
            )

    def _followed(
        self,
        child: "Child",
        target: DocumentSink,
        take_links: TakeLinks,
        watch: Waiting,
        so_far: Extraction,
        stored: StoredReading | None,
    ) -> Extraction:
        while True:
            answer = child.next_answer(watch)
            if isinstance(answer, Wrote):
                target.write(answer.chunk)
            elif isinstance(answer, Linked):
                references = Worded(answer.references, answer.words) if answer.words else answer.references
                take_links(references, answer.base, answer.kind)
                so_far.links += len(answer.references)
            elif isinstance(answer, Passed) and stored is not None:
                stored.save(answer.reading)
            elif isinstance(answer, WantsContext):
                child.send(self._context(answer.address))
            else:
                return _end(answer)

    def _context(self, address: str) -> Context:
        return Context(self._contexts(address), not self._contexts.to_fetch([address]))


class Child:
    """A process in a sandbox."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings.sandbox
        self._documents = 0
        self._heard = self._looked = time.monotonic()
        self._scratch = tempfile.TemporaryDirectory(prefix="tamias-sandbox-", ignore_cleanup_errors=True)
        environment = {name: value for name, value in os.environ.items() if name.startswith(_PASSED_ON)}
        self._orders, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tamias.crawl.sandbox.child", str(os.getpid())],
                stdin=theirs.fileno(),
                stdout=subprocess.PIPE,
                env={**environment, "TMPDIR": self._scratch.name},
                start_new_session=True,
            )
        lower_priority(self._process.pid, niceness(settings.crawl.workers))
        assert self._process.stdout is not None
        self._frames = Frames(self._process.stdout.fileno(), self._orders.fileno())
        self._begin(settings)

    @property
    def used_up(self) -> bool:
        """Tell if the next document needs a new process."""
        return self._documents >= self._settings.documents or self._resident() > REUSABLE_MEMORY

    def send(self, order: Order) -> None:
        """Raises `Died`."""
        self._heard = time.monotonic()
        self._documents += isinstance(order, Job)
        with _sent_along(order) as (sent, file):
            try:
                self._frames.send(sent, file)
            except OSError as error:
                raise self._death() from error

    def next_answer(self, waiting: Waiting) -> Answer:
        """Return the next answer; `waiting` is called now and then and may raise. Raises `Died`."""
        while True:
            if time.monotonic() - self._looked > LOOK_SECONDS:
                self._looked = time.monotonic()
                waiting()
            try:
                answer = self._frames.receive(answers, LOOK_SECONDS)
            except EOFError as error:
                raise self._death() from error
            except FrameError as error:
                raise self.killed(f"its analysis talked nonsense: {error}") from error
            if answer is not None:
                self._heard = time.monotonic()
                if isinstance(answer, Broke) and answer.memory:
                    raise self.killed(self._over_memory())
                return answer
            silence = self._settings.cpu * SILENCE_PART
            if self._is_at_work():
                self._heard = time.monotonic()
            elif time.monotonic() - self._heard > silence:
                raise self.killed(
                    f"its analysis was silent for {silence} s (limit sandbox.cpu, {SILENCE_PART} times)"
                )

    def cpu_seconds(self) -> float:
        """The processor time that it has taken so far."""
        fields = self._stat()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK") if fields else 0.0

    def _is_at_work(self) -> bool:
        """Tell if the process runs or waits for a processor or a disk, for which there are limits."""
        return self._stat()[:1] in (["R"], ["D"])

    def _stat(self) -> list[str]:
        """Return the fields of the process in `/proc` from its state on; none if it is gone."""
        try:
            return (
                Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
            )
        except OSError:
            return []

    def end(self) -> None:
        """Kills it, if it still lives."""
        self._process.kill()
        self._process.wait()
        self._orders.close()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._scratch.cleanup()

    def _begin(self, settings: Settings) -> None:
        try:
            self._frames.send(Plan(settings))
            ready: Answer | None = self.next_answer(lambda: None)
        except (OSError, Died):
            ready = None
        if not isinstance(ready, Ready):
            self.end()
            code = self._process.returncode
            raise TamiasError(f"the sandbox did not start (exit {code}); sandbox.use = never does without")
        if ready.open:
            _log.warning("the sandbox has no wall around: %s", ", ".join(ready.open))

    def _resident(self) -> int:
        try:
            pages = int(Path(f"/proc/{self._process.pid}/statm").read_text(encoding="ascii").split()[1])
        except (OSError, IndexError):
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE")

    def killed(self, reason: str) -> Died:
        """Kills it at once; what is to be raised."""
        self._process.kill()
        return Died(reason)

    def _death(self) -> Died:
        """Explain by its exit code why the process ended."""
        code = self._process.wait()
        if code == -signal.SIGXCPU:
            return Died(
                f"its analysis took {self._settings.cpu} s of CPU time without finding anything, or"
                f" {self._settings.cpu_whole} s in all (limits sandbox.cpu, sandbox.cpu_whole)"
            )
        if code in (-signal.SIGABRT, -signal.SIGKILL):
            return Died(f"set aside: {self._over_memory()}, or failed ({signal.Signals(-code).name})")
        how = signal.Signals(-code).name if code < 0 else f"exit {code}"
        return Died(f"set aside: its analysis ended the sandbox ({how})")

    def _over_memory(self) -> str:
        return f"its analysis wanted more than {self._settings.memory} bytes of memory (limit sandbox.memory)"


@contextmanager
def _sent_along(order: Order) -> Iterator[tuple[Order, int | None]]:
    """A large body goes along as an open file, for the sandbox cannot open it by its name."""
    body = order.capture.body if isinstance(order, Job) else None
    if not isinstance(order, Job) or body is None or body.path is None:
        yield order, None
        return
    nameless = msgspec.structs.replace(body, path=None, descriptor=-1)
    with Path(body.path).open("rb") as file:
        capture = msgspec.structs.replace(order.capture, body=nameless)
        yield msgspec.structs.replace(order, capture=capture), file.fileno()


def _end(answer: Answer) -> Extraction:
    """Return the result of a document. Raises `Wanting`, and `RuntimeError` for a fault of ours."""
    if isinstance(answer, WantsMore):
        raise Wanting(answer.addresses)
    if isinstance(answer, DocumentEnd):
        return answer.found
    raise RuntimeError(f"in the sandbox: {answer.fault if isinstance(answer, Broke) else answer}")
