"""Worker processes are forks of one process that has imported all they need.

Imports are most of what it takes to start a worker: they are done once for all workers of a program, and
while its database starts. The server is `python -m MODULE` with a socket as its stdin, or a fork of a program
that has imported the same for itself; each worker gets pipes of its own as stdin and stdout.
"""

import asyncio
import ctypes
import gc
import logging
import os
import selectors
import signal
import socket
import subprocess
import sys
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import NoReturn

import msgspec

from tamias.model.process import end_process, flush_streams

_log = logging.getLogger(__name__)

DATABASE_WORKER = "tamias.crawl.worker"
"""The module of workers that have a database."""

PROCESS_NAME = "tamias-worker"
"""The command line of workers that are forks of a program, whose own may hold a password."""
_LAST_STREAM = 2
_MESSAGE_BYTES = 128
_KILLED = -signal.SIGKILL

_Forked = tuple[int, asyncio.Future[int]]
"""The process id of a fork, and its exit code to come."""


class _ForkMessage(msgspec.Struct, omit_defaults=True):
    """A message of the server: first that a fork was made (0: it failed), later how it ended."""

    pid: int
    exit_code: int | None = None


class WorkerProcess:
    """A fork, by its stdin and stdout.

    Pipes, not one socket: that would be reset, not ended, when this process is killed with lines unread, and
    the worker's event loop (uvloop) tells its reader nothing of a reset.
    """

    def __init__(self, pid: int, ended: asyncio.Future[int]) -> None:
        self._pid = pid
        self._ended = ended
        self.stdin: asyncio.WriteTransport
        self.stdout = asyncio.StreamReader()

    async def connect(self, stdin: int, stdout: int) -> None:
        """Take over our ends of its pipes."""
        loop = asyncio.get_running_loop()
        self.stdin, _ = await loop.connect_write_pipe(asyncio.Protocol, os.fdopen(stdin, "wb", 0))
        reading = asyncio.StreamReaderProtocol(self.stdout)
        self._reading, _ = await loop.connect_read_pipe(lambda: reading, os.fdopen(stdout, "rb", 0))

    async def wait(self) -> int:
        """Return the exit code; a negative one is the signal that ended the process."""
        return await asyncio.shield(self._ended)

    def close(self) -> None:
        """Let go of its pipes: it learns by that that it is to end."""
        self.stdin.close()
        self._reading.close()

    def kill(self) -> None:
        """End it at once."""
        if not self._ended.done():
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)


class _OwnFork:
    """A server that is a fork of this process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> None:
        os.waitpid(self.pid, 0)


class ForkServer:
    """The server of one module, used by all pools of this process; started when it is first needed."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._process: subprocess.Popen[bytes] | _OwnFork | None = None
        self._socket: socket.socket | None = None
        self._requests: deque[asyncio.Future[_Forked]] = deque()
        self._ended: dict[int, asyncio.Future[int]] = {}

    def start(self) -> None:
        """Let it import while this process does something else. Nothing happens if it runs already."""
        if self._socket is not None:
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        with theirs:
            # A session of its own: a terminal's Ctrl-C must not reach it.
            self._process = subprocess.Popen(
                [sys.executable, "-m", self._module], stdin=theirs.fileno(), start_new_session=True
            )
        self._socket = ours  # last: who is interrupted before has no server, and it ends by itself

    def start_as_fork(self, serve: Callable[[], NoReturn]) -> None:
        """The same, as a fork of this process, which has imported what `serve` needs.

        Only a process of one thread can be forked without harm: beside others, the server is started anew.
        """
        if self._socket is not None:
            return
        if not _has_one_thread():
            self.start()
            return
        flush_streams()
        gc.freeze()  # or else either's collector writes to the pages that both share
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if (pid := os.fork()) == 0:
            _become_server(theirs.fileno(), serve)
        theirs.close()
        ours.setblocking(False)
        self._process = _OwnFork(pid)
        self._socket = ours

    async def fork(self) -> WorkerProcess:
        """A new worker. ChildProcessError if the server died, or cannot make one."""
        self.start()
        assert self._socket is not None
        loop = asyncio.get_running_loop()
        loop.add_reader(self._socket, self._hear)
        request: asyncio.Future[_Forked] = loop.create_future()
        (its_stdin, stdin), (stdout, its_stdout) = os.pipe(), os.pipe()
        try:
            self._ask_for([its_stdin, its_stdout])
            self._requests.append(request)
            process = WorkerProcess(*await request)  # it may have ended by now
        except BaseException:
            os.close(stdin)
            os.close(stdout)
            raise
        await process.connect(stdin, stdout)
        return process

    def _ask_for(self, pipes: list[int]) -> None:
        assert self._socket is not None
        try:
            socket.send_fds(self._socket, [b"fork"], pipes)
        except OSError:  # it has just died: heard of as any death
            self._hear()
            raise ChildProcessError(self._module) from None
        finally:
            for pipe in pipes:
                os.close(pipe)

    def close(self) -> None:
        """End it if it has no worker left. It can be started again."""
        if self._socket is not None and not self._requests and not self._ended:
            self._forget()

    def _hear(self) -> None:
        assert self._socket is not None
        try:
            message = self._socket.recv(_MESSAGE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            message = b""
        if not message:
            self._died()
            return
        answer = msgspec.json.decode(message, type=_ForkMessage)
        if answer.exit_code is not None:
            self._ended.pop(answer.pid).set_result(answer.exit_code)
            return
        request = self._requests.popleft()
        if answer.pid:
            ended = self._ended[answer.pid] = asyncio.get_running_loop().create_future()
            if not request.cancelled():  # else its socket is closed, so that it ends by itself
                request.set_result((answer.pid, ended))
        elif not request.cancelled():
            request.set_exception(ChildProcessError(self._module))

    def _died(self) -> None:
        """Let the forks of a dead server go on; the system tells when they end, but not how."""
        for pid, ended in self._ended.items():
            try:
                handle = os.pidfd_open(pid)
            except ProcessLookupError:
                ended.set_result(_KILLED)
            else:
                asyncio.get_running_loop().add_reader(handle, _end_unknown, handle, ended)
        for request in self._requests:
            if not request.done():
                request.set_exception(ChildProcessError(self._module))
        self._ended.clear()
        self._requests.clear()
        self._forget()

    def _forget(self) -> None:
        assert self._socket is not None
        assert self._process is not None
        with suppress(RuntimeError):  # no loop runs
            asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()
        self._process.kill()
        self._process.wait()
        self._socket = self._process = None


_SERVERS: ContextVar[dict[str, ForkServer]] = ContextVar("servers", default={})  # noqa: B039 (one for all)
"""By module. Each belongs to one event loop."""


def fork_server(module: str) -> ForkServer:
    """The one of this process, or of a thread that uses its own."""
    return _SERVERS.get().setdefault(module, ForkServer(module))


def use_own_servers() -> None:
    """Give this thread servers of its own: its event loop is not that of others."""
    _SERVERS.set({})


def _end_unknown(handle: int, ended: asyncio.Future[int]) -> None:
    asyncio.get_running_loop().remove_reader(handle)
    os.close(handle)
    ended.set_result(_KILLED)


def _has_one_thread() -> bool:
    """Tell if the process has only one thread, counting those of libraries."""
    with suppress(OSError):  # nobody can tell
        return len(os.listdir("/proc/self/task")) == 1
    return False


def _become_server(asking: int, serve: Callable[[], NoReturn]) -> NoReturn:
    """Run the server in a fork of the program, and never return."""
    code = 1
    try:
        os.setsid()
        _write_over_command_line(PROCESS_NAME.encode())
        os.dup2(asking, 0)
        # Not one that holds what the program has read ahead.
        sys.stdin = open(0, closefd=False, encoding="utf-8")  # noqa: SIM115
        for name in os.listdir("/proc/self/fd"):
            if int(name) > _LAST_STREAM:
                with suppress(OSError):  # that of the list itself
                    os.close(int(name))
        serve()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 (as the interpreter would)
        traceback.print_exc()
    with suppress(SystemExit):
        end_process(code)
    os._exit(code)


def _write_over_command_line(name: bytes) -> None:
    """Lists of processes show what is there; the kernel tells where that is (proc(5), `arg_start`)."""
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    begin, end = int(fields[45]), int(fields[46])
    ctypes.memmove(begin, name[: end - begin - 1].ljust(end - begin, b"\0"), end - begin)


def is_fork() -> bool:
    """Serves forks, in a process that has imported what they need: true in each of them, false at its end."""
    gc.collect()
    gc.freeze()  # or else a fork's collector writes to the pages that all share
    gc.enable()
    with socket.socket(fileno=os.dup(0)) as asking, selectors.DefaultSelector() as selector:
        selector.register(asking, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                if key.data is not None:
                    selector.unregister(key.fd)
                    _say(asking, _ended(key.fd, key.data))
                elif (its := _requested_pipes(asking)) is None:
                    selector.unregister(asking)
                elif (pid := _fork()) == 0:
                    _become_worker(*its)
                    return True
                else:
                    for pipe in its:
                        os.close(pipe)
                    if pid:
                        selector.register(os.pidfd_open(pid), selectors.EVENT_READ, pid)
                    _say(asking, _ForkMessage(pid or 0))
    return False


def _ended(handle: int, pid: int) -> _ForkMessage:
    os.close(handle)
    return _ForkMessage(pid, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def _requested_pipes(asking: socket.socket) -> list[int] | None:
    """The pipes of the next fork; none when there will be no more."""
    with suppress(ConnectionError):
        _, descriptors, _, _ = socket.recv_fds(asking, _MESSAGE_BYTES, 2)
        return descriptors or None
    return None


def _fork() -> int | None:
    try:
        return os.fork()
    except OSError as error:
        _log.warning("no worker could be started: %s", error.strerror)
        return None


def _become_worker(stdin: int, stdout: int) -> None:
    os.setsid()
    for pipe, place in ((stdin, 0), (stdout, 1)):
        os.dup2(pipe, place)
        os.close(pipe)


def _say(asking: socket.socket, message: _ForkMessage) -> None:
    with suppress(OSError):  # whoever asked is gone
        asking.send(msgspec.json.encode(message))
