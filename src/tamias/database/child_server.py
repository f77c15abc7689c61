"""A server that is there while somebody uses it, and the keeper, a small process that owns it.

Every user holds `users.lock` together with the others; the keeper, who holds `keeper.lock`, stops the server
when it can have the users' lock alone. PostgreSQL and the SPARQL server are kept so, each in a folder.
"""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple, NoReturn

from tamias.database.disk import alone, is_free, private, refusals, shared
from tamias.model import errors
from tamias.model.errors import TamiasError
from tamias.model.process import environment_without_secrets

NEWCOMER_SECONDS = 120
_LOCK_SECONDS = 30
_LONGEST_LINE = 64 * 1024
_LOG_LIMIT = 10 << 20


def _nothing() -> None:
    pass


class StartReport(NamedTuple):
    """The keeper's one message to the process that started it: ready, or what went wrong."""

    error: str | None = None
    message: str = ""


class ServerUse:
    """The use of one folder's server by this process, until `close`."""

    keeper: str
    """The module that is the keeper's program."""
    failure: type[TamiasError]
    """What is raised when the server cannot be started, where nothing more is known."""
    unavailable: type[TamiasError]
    """What is raised when the keeper was ended."""
    unanswered: type[TamiasError]
    """What is raised when a keeper is there and does not answer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._users = shared(folder / "users.lock")
        # By way of it a socket can be reached however long its path is.
        self._directory = os.open(folder, os.O_PATH | os.O_DIRECTORY)

    def close(self) -> None:
        """Stop using the server; the last user ends it. May be called twice."""
        if not self._users.closed:
            os.close(self._directory)
            self._users.close()

    def is_up(self) -> bool:
        """Return whether a keeper is there, and its server takes connections."""
        return not is_free(self.folder / "keeper.lock") and (self.folder / "running.json").exists()

    def start(
        self, orders: str, ready: "KeeperProcess | None" = None, meanwhile: Callable[[], None] = _nothing
    ) -> None:
        """Start a keeper if there is none, with orders on its command line; cheap when there is one.

        One that is `ready` with the same orders is used if one is needed; the caller closes it. While a
        keeper that was started works, `meanwhile` is called.
        """
        deadline = time.monotonic() + NEWCOMER_SECONDS
        with self.starting():
            while not self.is_up():
                if time.monotonic() > deadline:
                    raise self.unanswered(
                        f"the keeper of {self.folder} does not answer; end it or wait for it"
                    )
                if is_free(self.folder / "keeper.lock"):
                    self._start_keeper(ready or KeeperProcess(self.keeper, orders), meanwhile)
                    ready = None
                else:
                    time.sleep(0.05)

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Hold the lock that lets only one process start a keeper."""
        with refusals(self.folder), alone(self.folder / "start.lock", math.inf):
            yield

    def _start_keeper(self, process: "KeeperProcess", meanwhile: Callable[[], None]) -> None:
        log = self.folder.parent / "log" / "keeper.log"
        with closing(process):
            ended, answer = process.begin(log, meanwhile)
        if ended != 0:
            raise self.failure(f"the keeper of {self.folder} cannot be started; see {log}")
        if not answer:
            raise self.unavailable(f"the keeper of {self.folder} was ended; see {log}")
        report = StartReport(**json.loads(answer))
        if report.error is not None:
            raise getattr(errors, report.error, self.failure)(report.message)


class KeeperProcess:
    """`python -m MODULE ORDERS DESCRIPTOR`: it loads its modules, and does nothing until told to begin."""

    def __init__(self, module: str, orders: str) -> None:
        reading, writing = os.pipe()
        self._answer = os.fdopen(reading, "rb")
        try:
            # A session of its own: a terminal's Ctrl-C must not reach it.
            self._first = subprocess.Popen(
                [sys.executable, "-P", "-m", module, orders, str(writing)],
                pass_fds=[writing],
                start_new_session=True,
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                env=environment_without_secrets(),
            )
        finally:
            os.close(writing)

    def begin(self, log: Path, meanwhile: Callable[[], None]) -> tuple[int, bytes]:
        """Let it work, until its first process has made another; from now on it writes to the log.

        Returns how that first one ended, and the line that was written to the descriptor. Calls `meanwhile`
        before it waits for that.
        """
        log.parent.mkdir(mode=0o700, exist_ok=True)
        with suppress(BrokenPipeError):  # it has ended, and is asked how
            assert self._first.stdin is not None
            with self._first.stdin as words:
                words.write(os.fsencode(log.absolute()))
        try:
            meanwhile()
            answer = self._answer.readline(_LONGEST_LINE)
        except BaseException:  # Ctrl-C: if it has made no other process yet, it is not to do so now
            self._first.terminate()
            self._first.wait()
            raise
        return self._first.wait(), answer

    def close(self) -> None:
        """End it if it was not told to begin. May be called twice."""
        assert self._first.stdin is not None
        self._first.stdin.close()
        self._first.terminate()
        self._first.wait()
        self._answer.close()


class ChildServer:
    """A server process that ends with its parent, and writes to a log."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        assert self.process is not None
        return self.process.pid

    def is_running(self) -> bool:
        """Return whether it was started and has not ended."""
        return self.process is not None and self.process.poll() is None

    def spawn(self, command: list[str], in_child: Callable[[], None], descriptors: Sequence[int] = ()) -> int:
        """Start it; return where in the log its own words begin. The caller has one thread."""
        with open(self.log, "ab", opener=private) as log:
            begin = log.tell()
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=descriptors,
                preexec_fn=in_child,  # noqa: PLW1509 (one thread)
            )
        return begin

    def end(self, polite: signal.Signals, final: signal.Signals, seconds: float) -> None:
        """Ask it to end, and makes it end after some time."""
        if self.process is None or not self.is_running():
            return
        self.process.send_signal(polite)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.send_signal(final)
            self.process.wait()


class Keeping:
    """The messages of a keeper, to the process that started it and to all users."""

    def __init__(self, folder: Path, ready: IO[bytes]) -> None:
        self.folder = folder
        self._running = folder / "running.json"
        self._ready = ready

    def publish(self, running: bytes) -> None:
        """Users may connect from now on, and read this."""
        partial = self._running.with_name("running.json.new")
        partial.write_bytes(running)
        partial.replace(self._running)

    def withdraw(self) -> None:
        """Tell users that they can no longer connect."""
        self._running.unlink(missing_ok=True)

    def report(self, report: StartReport) -> None:
        """Say it once: later there is nobody to listen."""
        if not self._ready.closed:
            with suppress(BrokenPipeError), self._ready:
                self._ready.write(json.dumps(report._asdict()).encode() + b"\n")


def run_keeper(folder: Path, descriptor: int, keep: Callable[[Keeping], None]) -> None:
    """The program of a keeper, which `ServerUse` starts with a descriptor to report to."""
    with os.fdopen(descriptor, "wb", buffering=0) as ready:
        log = os.fsdecode(sys.stdin.buffer.read())
        if not log:
            return  # whoever started us has no need of us, or is gone
        _write_to(log)
        keeping = Keeping(folder, ready)
        try:
            with refusals(folder), alone(folder / "keeper.lock", _LOCK_SECONDS):
                os.chdir(folder)
                # So that nobody who lives longer has to wait for the keeper. The lock goes with it: whoever
                # sees the first process end knows by the lock whether there is a second.
                if os.fork() != 0:
                    os._exit(0)
                keep(keeping)
        except TamiasError as error:
            keeping.report(StartReport(type(error).__name__, str(error)))
            with suppress(OSError):  # on a full disk there is no room for this either
                sys.stderr.write(f"{error}\n")
                sys.stderr.flush()


def leave_on(*signals: signal.Signals) -> None:
    """Make these signals end the process by way of its `finally` blocks."""
    for number in signals:
        signal.signal(number, _leave)


def server_log(folder: Path, name: str) -> Path:
    """The log of the server of a folder; the old one is put away when it is large."""
    log = folder.parent / "log" / name
    log.parent.mkdir(mode=0o700, exist_ok=True)
    if log.exists() and log.stat().st_size > _LOG_LIMIT:
        log.replace(log.with_name(f"{name}.old"))
    return log


def socket_folder(folder: Path) -> Path:
    """An empty folder for sockets that only the owner of the data can reach."""
    sockets = folder / "socket"
    shutil.rmtree(sockets, ignore_errors=True)
    sockets.mkdir(mode=0o700)
    return sockets


def _write_to(log: str) -> None:
    """Redirect the output of this process to the log, or to nowhere if the log cannot be opened."""
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        said = private(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    except OSError:
        said = nothing
    for place, handle in enumerate((nothing, said, said)):
        os.dup2(handle, place)


def _leave(number: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + number)
