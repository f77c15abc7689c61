"""The keeper of the SPARQL server: starts it, hands out connections to it, ends it when nobody needs it.

Alone in a network of its own with the server, it listens on a socket in `catalogue/socket`, which only the
owner of the data can reach, and passes connected descriptors through it; it sees no byte of a query.
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
from contextlib import suppress
from pathlib import Path

import msgspec

from tamias.crawl.catalogue.errors import StoreError
from tamias.crawl.catalogue.server import StoreServer
from tamias.database.child_server import (
    Keeping,
    StartReport,
    leave_on,
    run_keeper,
    server_log,
    socket_folder,
)
from tamias.database.locks import opened, try_alone

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1
_libc = ctypes.CDLL(None, use_errno=True)


def seclude() -> None:
    """Puts this process, which has one thread only, into a network of its own. Raises `OSError`."""
    owner = os.geteuid()
    if _libc.unshare(_CLONE_NEWNET) != 0:
        if _libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        Path("/proc/self/uid_map").write_text(f"{owner} {owner} 1", encoding="ascii")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))


CONNECT, ADOPT = b"c", b"a"
"""What a user of the keeper may ask for: a connection; the new store in place of the old one."""

PORT = 7878
_POLL_SECONDS = 0.25
_PATIENCE_SECONDS = 5.0
"""How long the server may work for a client that has gone, beyond the time limit of a query."""
_LOOK_SECONDS = 1.0


class Orders(msgspec.Struct, frozen=True):
    """What the first user tells the keeper."""

    data: str
    seconds: float
    guarded: bool


class RunningCatalogue(msgspec.Struct, frozen=True):
    """What the keeper tells its users, in `catalogue/running.json`."""

    server_pid: int
    keeper_pid: int
    seconds: float


def main() -> None:
    """`python -m tamias.crawl.catalogue.keeper ORDERS READY_FD`, started by `kept.py` only."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    orders = msgspec.json.decode(sys.argv[1], type=Orders)
    folder = Path(orders.data) / "catalogue"
    run_keeper(folder, int(sys.argv[2]), lambda keeping: StoreKeeper(keeping, orders).keep())


class StoreKeeper:
    """Owns the server of one folder."""

    def __init__(self, keeping: Keeping, orders: Orders) -> None:
        self._keeping = keeping
        self._folder = folder = keeping.folder
        self._seconds = orders.seconds
        port = _secluded_port() if orders.guarded else _free_port()
        log = server_log(folder, "sparql.log")
        self._server = StoreServer(folder / "store" / "oxigraph", log, port, orders.seconds)
        self._deserted: dict[str, float] = {}
        self._looked_at = 0.0

    def keep(self) -> None:
        """Until nobody uses it."""
        leave_on(signal.SIGTERM, signal.SIGHUP)
        with _listening(socket_folder(self._folder)) as asked:
            try:
                self._start()
                self._keeping.report(StartReport())
                self._watch(asked)
            finally:
                self._keeping.withdraw()
                self._server.stop()

    def _start(self) -> None:
        """Starts the server, on the new store if there is a complete one."""
        new, store = self._folder / "store.new", self._folder / "store"
        if new.exists():
            shutil.rmtree(store, ignore_errors=True)
            new.rename(store)
        (store / "oxigraph").mkdir(parents=True, mode=0o700, exist_ok=True)
        self._server.start()
        self._keeping.publish(RunningCatalogue(self._server.pid, os.getpid(), self._seconds))

    def _watch(self, asked: socket.socket) -> None:
        with opened(self._folder / "users.lock") as users:
            while not try_alone(users):
                readable, _, _ = select.select([asked], [], [], _POLL_SECONDS)
                self._end_deserted()
                if not self._server.is_running():
                    self._start()
                if readable:
                    with suppress(OSError), asked.accept()[0] as user:
                        self._serve(user)
            # The lock is held meanwhile, so a newcomer waits for the end.
            self._server.stop()

    def _serve(self, user: socket.socket) -> None:
        user.settimeout(1.0)
        word = user.recv(1)
        if word == ADOPT:
            self._server.stop()
            self._start()
            user.sendall(ADOPT)
        elif word == CONNECT:
            with self._server.connection() as connection:
                socket.send_fds(user, [CONNECT], [connection.fileno()])

    def _end_deserted(self) -> None:
        """Ends a server that goes on with a query which nobody waits for."""
        now = time.monotonic()
        if now - self._looked_at < _LOOK_SECONDS:
            return
        self._looked_at = now
        self._deserted = {each: self._deserted.get(each, now) for each in self._server.deserted()}
        if any(now - since > _PATIENCE_SECONDS for since in self._deserted.values()):
            sys.stderr.write("a query did not end at the time limit; the SPARQL server is started again\n")
            sys.stderr.flush()
            self._server.kill()


def _secluded_port() -> int:
    try:
        seclude()
    except OSError as error:
        raise StoreError(
            f"the SPARQL server cannot be shut off from other users of this machine ({error.strerror}); "
            "allow user namespaces, name another server with [serve] sparql, or set "
            "[serve] sparql_guard = false where nobody else can reach the loopback address, as in a container"
        ) from error
    return PORT


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def _listening(sockets: Path) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX)
    os.chdir(sockets)  # the path may be longer than a socket's may be
    listening.bind("ask")
    listening.listen(128)
    return listening


if __name__ == "__main__":
    main()
