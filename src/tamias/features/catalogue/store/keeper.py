"""The keeper of the SPARQL store: one process that writes it, and some that answer queries, as its children.

It listens on a socket in `catalogue/socket`, which only the owner of the data can reach, and hands each user
to a child; it sees no byte of a query. A query that is given up, or takes too long, ends with its process,
and nobody else's does.
"""

import ctypes
import fcntl
import os
import select
import shutil
import signal
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import NoReturn

import msgspec

from tamias.database.child_server import (
    Keeping,
    StartReport,
    leave_on,
    run_keeper,
    socket_folder,
)
from tamias.database.disk import opened, try_alone
from tamias.features.catalogue.errors import StoreError
from tamias.features.catalogue.store.answer import answer_queries
from tamias.features.catalogue.store.graph_writer import write_graphs
from tamias.features.catalogue.store.messages import ADOPT, LAST, MOST_QUERIES, QUERY, WRITE, QueryReply, send
from tamias.features.catalogue.store.snapshots import is_dirty, is_of_this_format

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)

_QUICK_SECONDS = 0.2
_QUICK_LOAD_SECONDS = 2.0
"""The same with a file to load: a process that has loaded a state of the past keeps it for later queries."""
_SLOWER = 10
"""A query that takes longer is so much nicer: what is written, and short queries, go before it."""
_POLL_MS = 250
_STOP_SECONDS = 20.0


def seclude() -> None:
    """Puts this process, which has one thread only, into a network of its own. Raises `OSError`."""
    owner = os.geteuid()
    if _libc.unshare(_CLONE_NEWNET) != 0:
        if _libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        Path("/proc/self/uid_map").write_text(f"{owner} {owner} 1", encoding="ascii")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))


class Orders(msgspec.Struct, frozen=True):
    """The options that the first user gives the keeper."""

    data: str
    seconds: float
    guarded: bool


class RunningCatalogue(msgspec.Struct, frozen=True):
    """The keeper's state for its users, in `catalogue/running.json`."""

    keeper_pid: int
    seconds: float


def main() -> None:
    """Run the keeper with ORDERS and READY_FD as arguments; only `local_store.py` starts it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    orders = msgspec.json.decode(sys.argv[1], type=Orders)
    folder = Path(orders.data) / "catalogue"
    run_keeper(folder, int(sys.argv[2]), lambda keeping: StoreKeeper(keeping, orders).keep())


class _Child:
    """A process of the keeper, and the line to it."""

    def __init__(self, work: Callable[[socket.socket], NoReturn]) -> None:
        """Raises `OSError` where there can be no more processes."""
        self.line, theirs = socket.socketpair()
        keeper = os.getpid()
        try:
            self.pid = os.fork()
        except OSError:
            self.line.close()
            theirs.close()
            raise
        if self.pid == 0:
            _be_a_child(keeper, theirs, work)
        theirs.close()

    def kill(self) -> None:
        """Kill it at once."""
        os.kill(self.pid, signal.SIGKILL)
        self.reap()

    def stop(self) -> None:
        """Close its line, so that it ends; kill it if it does not. What it wrote is on disk."""
        self.line.close()
        deadline = time.monotonic() + _STOP_SECONDS
        while os.waitpid(self.pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > deadline:
                self.kill()
                return
            time.sleep(0.005)

    def has_ended(self) -> bool:
        """Return whether it has ended by itself."""
        return os.waitpid(self.pid, os.WNOHANG)[0] != 0

    def reap(self) -> int:
        """Return its exit status."""
        self.line.close()
        return os.waitpid(self.pid, 0)[1]


class _QueryProcess(_Child):
    """A process that answers queries, and the user it works for."""

    user: socket.socket | None = None
    is_ending = False
    """Whether it takes no other query."""
    deadline = quick_until = 0.0

    def take(self, user: socket.socket, files: list[int], seconds: float) -> None:
        """Works for a user from now on, with the files that the user has sent."""
        socket.send_fds(self.line, [QUERY], [user.fileno(), *files])
        _close_all(files)
        now = time.monotonic()
        quick = _QUICK_LOAD_SECONDS if len(files) > 1 else _QUICK_SECONDS
        self.user, self.deadline, self.quick_until = user, now + seconds, now + quick

    def is_done(self) -> bool:
        """Return whether it has the answer, and let go of its user then."""
        try:
            word = self.line.recv(1, socket.MSG_DONTWAIT)
        except OSError:
            return False
        if not word:
            return False
        self.is_ending = word == LAST
        self.leave_user()
        return True

    def slow_down(self) -> None:
        """Lower its priority."""
        self.quick_until = inf
        with suppress(OSError):
            own = os.getpriority(os.PRIO_PROCESS, 0)
            os.setpriority(os.PRIO_PROCESS, self.pid, min(19, own + _SLOWER))

    def leave_user(self, reply: QueryReply | None = None) -> None:
        """Lets go of the user, with an answer of the keeper's if need be."""
        if self.user is not None:
            with self.user, suppress(OSError):
                if reply is not None:
                    send(self.user, reply)
            self.user = None


class _QueryProcesses:
    """The processes that answer queries, and the users who wait for one."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self._folder = folder
        self._seconds = seconds
        self._all: list[_QueryProcess] = []
        self._waiting: deque[tuple[socket.socket, list[int]]] = deque()

    def take(self, user: socket.socket, files: list[int]) -> None:
        """Take a user with a query."""
        self._waiting.append((user, files))
        self._assign()

    def watch(self, poll: select.poll) -> dict[int, Callable[[], None]]:
        """Return what to do when something happens at a descriptor."""
        events: dict[int, Callable[[], None]] = {}
        for each in self._all:
            poll.register(each.line, select.POLLIN)
            events[each.line.fileno()] = lambda each=each: self._heard(each)  # type: ignore[misc]
            if each.user is not None:
                poll.register(each.user, select.POLLRDHUP)
                events[each.user.fileno()] = lambda each=each: self._given_up(each)  # type: ignore[misc]
        for user, files in self._waiting:
            poll.register(user, select.POLLRDHUP)
            events[user.fileno()] = lambda user=user, files=files: self._left(user, files)  # type: ignore[misc]
        return events

    def end_late(self) -> None:
        """Ends the queries that have taken too long, and has others wait for nobody who takes long."""
        now = time.monotonic()
        for each in self._all:
            if each.user is not None and each.quick_until < now:
                each.slow_down()
        for each in [each for each in self._all if each.user is not None and each.deadline < now]:
            if not each.is_done():
                self._end(each, QueryReply("late"))
        self._assign()

    def end_idle(self) -> None:
        """End the processes that answer nothing now: what they keep of the past may be forgotten."""
        for each in [each for each in self._all if each.user is None]:
            self._end(each)

    def end_all(self) -> None:
        """End all processes and let all users go."""
        for each in list(self._all):
            self._end(each)
        for user, files in self._waiting:
            user.close()
            _close_all(files)
        self._waiting.clear()

    def _assign(self) -> None:
        while self._waiting:
            idle = next((each for each in self._all if each.user is None and not each.is_ending), None)
            if idle is None and len(self._all) >= MOST_QUERIES:
                return
            user, files = self._waiting.popleft()
            try:
                (idle or self._another()).take(user, files, self._seconds)
            except OSError:
                self._waiting.appendleft((user, files))
                if idle is None:  # there can be no other now: it is tried again soon
                    return
                self._end(idle)  # it has just ended

    def _another(self) -> _QueryProcess:
        process = _QueryProcess(lambda keeper: answer_queries(keeper, self._folder))
        self._all.append(process)
        return process

    def _heard(self, process: _QueryProcess) -> None:
        """Handle a process that is done or has ended by itself."""
        if process not in self._all:
            return
        if not process.is_done():
            self._all.remove(process)
            ended = process.reap()
            aborted = os.WIFSIGNALED(ended) and os.WTERMSIG(ended) in (signal.SIGABRT, signal.SIGSEGV)
            process.leave_user(QueryReply("memory") if aborted else None)
        self._assign()

    def _given_up(self, process: _QueryProcess) -> None:
        if process in self._all and process.user is not None and not process.is_done():
            self._end(process)
        self._assign()

    def _left(self, user: socket.socket, files: list[int]) -> None:
        if (user, files) in self._waiting:
            self._waiting.remove((user, files))
            user.close()
            _close_all(files)

    def _end(self, process: _QueryProcess, reply: QueryReply | None = None) -> None:
        self._all.remove(process)
        process.kill()
        process.leave_user(reply)


class StoreKeeper:
    """Owns the store of one folder, and its processes."""

    def __init__(self, keeping: Keeping, orders: Orders) -> None:
        self._keeping = keeping
        self._folder = keeping.folder
        self._seconds = orders.seconds
        self._store = self._folder / "store"
        try:
            if orders.guarded:
                seclude()
        except OSError as error:
            raise StoreError(
                f"the processes that answer queries cannot be shut off from the network ({error.strerror}); "
                "allow user namespaces, name another server with [serve] sparql, or set "
                "[serve] sparql_guard = false"
            ) from error
        self._queries = _QueryProcesses(self._store, orders.seconds)
        self._writer: _Child | None = None
        self._writer_started = 0.0

    def keep(self) -> None:
        """Serve until nobody uses the store."""
        leave_on(signal.SIGTERM, signal.SIGHUP)
        with _listening(socket_folder(self._folder)) as listener:
            try:
                self._open()
                running = RunningCatalogue(os.getpid(), self._seconds)
                self._keeping.publish(msgspec.json.encode(running))
                self._keeping.report(StartReport())
                self._watch(listener)
            finally:
                self._keeping.withdraw()
                self._queries.end_all()
                self._stop_writer()

    def _open(self) -> None:
        """Takes the new store if there is a complete one; one of an earlier version is not of use."""
        new, gone = self._folder / "store.new", self._folder / "store.gone"
        shutil.rmtree(gone, ignore_errors=True)
        if new.exists():
            with suppress(FileNotFoundError):
                self._store.rename(gone)  # queries wait for the next one: to remove it takes longer
            new.rename(self._store)
            shutil.rmtree(gone, ignore_errors=True)
        elif self._store.exists() and not is_of_this_format(self._store):
            shutil.rmtree(self._store)
        self._store.mkdir(mode=0o700, exist_ok=True)
        if is_dirty(self._store):
            self._start_writer()  # it makes the snapshot that is missing

    def _watch(self, listener: socket.socket) -> None:
        with opened(self._folder / "users.lock") as users:
            while not try_alone(users):
                poll = select.poll()
                poll.register(listener, select.POLLIN)
                events = self._queries.watch(poll)
                happened = [descriptor for descriptor, _ in poll.poll(_POLL_MS)]
                for descriptor in happened:
                    if descriptor in events:
                        events[descriptor]()
                if listener.fileno() in happened:
                    self._admit(listener)
                self._queries.end_late()
                self._see_to_writer()
            # The lock is held meanwhile, so a newcomer waits for the end.
            self._queries.end_all()
            self._stop_writer()

    def _admit(self, listener: socket.socket) -> None:
        with suppress(OSError):
            user = listener.accept()[0]
            try:
                user.settimeout(1.0)
                word, descriptors, _, _ = socket.recv_fds(user, 1, 3)
                user.settimeout(None)
                if word == QUERY and descriptors:
                    self._queries.take(user, descriptors)
                    return
                if word == WRITE:
                    writer = self._writer or self._start_writer()
                    socket.send_fds(writer.line, [WRITE], [user.fileno()])
                elif word == ADOPT:
                    self._stop_writer()
                    self._queries.end_idle()
                    self._open()
                    user.sendall(ADOPT)
            except BaseException:
                user.close()
                raise
            user.close()

    def _start_writer(self) -> _Child:
        self._writer = _Child(lambda keeper: write_graphs(keeper, self._store))
        self._writer_started = time.monotonic()
        return self._writer

    def _see_to_writer(self) -> None:
        """Notice a writer that has ended; start another if its changes are not in a snapshot yet."""
        if self._writer is not None and self._writer.has_ended():
            self._writer.line.close()
            self._writer = None
            if is_dirty(self._store) and time.monotonic() - self._writer_started > _STOP_SECONDS:
                with suppress(OSError):  # then whoever writes next has one started
                    self._start_writer()

    def _stop_writer(self) -> None:
        if self._writer is not None:
            self._writer.stop()
            self._writer = None


def _close_all(files: list[int]) -> None:
    for descriptor in files:
        os.close(descriptor)


def _be_a_child(keeper: int, line: socket.socket, work: Callable[[socket.socket], NoReturn]) -> NoReturn:
    """The life of a process after the fork: it has nothing of the keeper's but its line, and ends with it."""
    try:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != keeper:
            os._exit(1)
        for descriptor in map(int, os.listdir("/proc/self/fd")):
            if descriptor > 2 and descriptor != line.fileno():
                with suppress(OSError):
                    os.close(descriptor)
        work(line)
    except BaseException as error:  # noqa: BLE001 - nothing may pass to the keeper's own code
        sys.stderr.write(f"a process of the SPARQL store ended: {type(error).__name__}: {error}\n")
        sys.stderr.flush()
    os._exit(1)


def _listening(sockets: Path) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX)
    os.chdir(sockets)  # the path may be longer than a socket's may be
    listening.bind("ask")
    listening.listen(128)
    return listening


if __name__ == "__main__":
    main()
