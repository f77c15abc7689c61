"""`tamias` commands for tests: processes of their own, forked from one that has imported everything.

To load its modules takes a command longer than its work, so each pytest process starts one server that loads
them once (this file as a program) and forks for every command. A fork has its own arguments, environment,
folder and streams, takes signals and ends with an exit code, as any process. What depends on the start of the
interpreter is started by `subprocess`, and so is everything where TAMIAS_TEST_PROCESSES is set, as in
`make nightly`.
"""

import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress

_MESSAGE = struct.Struct("i")
_FIRST_FREE = 3
_MOST_BYTES = 1 << 18
_AT_START = ("PYTHON", "LD_", "LANG", "LC_", "MALLOC_", "OPENSSL_", "TAMIAS_PROFILE", "TAMIAS_WITHOUT")
"""Names of variables that the interpreter, its libraries or our modules read once, when they are loaded."""


def _needs_new_interpreter(env):
    """Whether an environment differs from ours in what only a new interpreter sees."""
    env = os.environ if env is None else env
    return any(
        name.startswith(_AT_START) and env.get(name) != os.environ.get(name) for name in {*env, *os.environ}
    )


def start(
    words, *, env=None, cwd=None, stdin=None, stdout=None, stderr=None, text=False, new=False, **others
):
    """`python -m tamias WORDS`, as `subprocess.Popen` would start it; as a `new` interpreter if need be."""
    words = [os.fspath(word) for word in words]
    if new or others or os.environ.get("TAMIAS_TEST_PROCESSES") or _needs_new_interpreter(env):
        streams = {"stdin": stdin, "stdout": stdout, "stderr": stderr}
        return subprocess.Popen(
            [sys.executable, "-m", "tamias", *words], env=env, cwd=cwd, text=text, **streams, **others
        )
    return Command(words, env, cwd, (stdin, stdout, stderr), text=text)


def run(
    words,
    *,
    input=None,  # noqa: A002 (as subprocess names it)
    timeout=None,
    check=False,
    capture_output=False,
    **others,
):
    """The same to its end, as `subprocess.run`."""
    if capture_output:
        others |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if input is not None:
        others["stdin"] = subprocess.PIPE
    with start(words, **others) as process:
        try:
            out, err = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(process.args, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done


class Command:
    """A fork that runs one command; it is used as a `subprocess.Popen`."""

    def __init__(self, words, env, cwd, streams, *, text):
        self.args = [sys.executable, "-m", "tamias", *words]
        self.returncode = None
        theirs, ours = [], []
        for number, stream in enumerate(streams):
            its, own = _ends(number, stream, theirs, text)
            theirs.append(its)
            ours.append(own)
        self.stdin, self.stdout, self.stderr = ours
        self._waiting = threading.Lock()
        place = os.getcwd() if cwd is None else os.fspath(cwd)
        request = json.dumps([words, dict(os.environ if env is None else env), place]).encode()
        self._told, told = socket.socketpair()
        with told:
            _server().ask(request, [told.fileno(), *theirs])
        for its in set(theirs):
            os.close(its)
        self.pid = self._hear()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()
        self.wait()

    def poll(self):
        with self._waiting:
            if self.returncode is None and select.select([self._told], [], [], 0)[0]:
                self._end()
        return self.returncode

    def wait(self, timeout=None):
        with self._waiting:
            if self.returncode is None:
                if not select.select([self._told], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired(self.args, timeout)
                self._end()
        return self.returncode

    def communicate(self, input=None, timeout=None):  # noqa: A002 (as subprocess names it)
        deadline = None if timeout is None else time.monotonic() + timeout
        said = {}
        readers = [
            threading.Thread(target=lambda s=stream: said.__setitem__(s, s.read()), daemon=True)
            for stream in (self.stdout, self.stderr)
            if stream is not None and not stream.closed
        ]
        for reader in readers:
            reader.start()
        if self.stdin is not None:
            with suppress(BrokenPipeError):
                if input:
                    self.stdin.write(input)
                self.stdin.close()
        for reader in readers:
            reader.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
            if reader.is_alive():
                raise subprocess.TimeoutExpired(self.args, timeout)
        self.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        return said.get(self.stdout), said.get(self.stderr)

    def send_signal(self, number):
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def _hear(self):
        told = self._told.recv(_MESSAGE.size)
        assert told, "the server of commands has ended"
        return _MESSAGE.unpack(told)[0]

    def _end(self):
        self.returncode = self._hear()
        self._told.close()


def _ends(number, stream, before, text):
    """The descriptor for a fork, and our stream if it is a pipe."""
    if stream == subprocess.PIPE:
        reading, writing = os.pipe()
        its, own = (reading, writing) if number == 0 else (writing, reading)
        mode = "w" if number == 0 else "r"
        return its, os.fdopen(own, mode, encoding="utf-8") if text else os.fdopen(own, mode + "b")
    if stream == subprocess.STDOUT:
        return os.dup(before[1]), None
    if stream == subprocess.DEVNULL:
        return os.open(os.devnull, os.O_RDWR), None
    if stream is None:
        return os.dup(number), None
    return os.dup(stream if isinstance(stream, int) else stream.fileno()), None


class _Server:
    """The process that forks, seen from ours."""

    def __init__(self):
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MOST_BYTES)
        with theirs:
            # It ends when our end of the socket is closed.
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                # NumPy would start threads.
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            )

    def ask(self, request, descriptors):
        with self._lock:
            socket.send_fds(self._socket, [request], descriptors)

    def close(self):
        self._socket.close()
        self._process.wait()


_started = []


def _server():
    if not _started:
        _started.append(_Server())
    return _started[0]


def close():
    """Ends the server of this process, if there is one."""
    while _started:
        _started.pop().close()


def _serve(asking):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for pytest, which then closes the socket
    _load()
    gc.collect()
    gc.freeze()
    poll = select.poll()
    poll.register(asking, select.POLLIN)
    running = {}
    while True:
        for descriptor, _ in poll.poll():
            if descriptor != asking.fileno():
                poll.unregister(descriptor)
                _tell_end(descriptor, *running.pop(descriptor))
                continue
            request, descriptors, _, _ = socket.recv_fds(asking, _MOST_BYTES, 4)
            if not request:
                os._exit(0)
            told, *streams = descriptors
            pid = os.fork()
            if pid == 0:
                asking.detach()
                _become(json.loads(request), streams)
                return
            for stream in streams:
                os.close(stream)
            os.write(told, _MESSAGE.pack(pid))
            watched = os.pidfd_open(pid)
            running[watched] = (pid, told)
            poll.register(watched, select.POLLIN)


def _tell_end(watched, pid, told):
    os.close(watched)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with suppress(BrokenPipeError):
        os.write(told, _MESSAGE.pack(code))
    os.close(told)


def _load():
    """All of Tamias that loads without starting a thread, for a process with threads must not fork."""
    import tamias

    for module in pkgutil.walk_packages(tamias.__path__, "tamias."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    assert len(os.listdir("/proc/self/task")) == 1


def _become(request, streams):
    """In the fork: everything as a new process has it."""
    words, env, cwd = request
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(_FIRST_FREE, os.sysconf("SC_OPEN_MAX"))
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    if "TAMIAS_FAULT" in env:  # it is read when the module is loaded
        importlib.reload(sys.modules["tamias.model.faults"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv[:] = ["tamias", *words]


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
    from tamias.cli.main import main

    main()
