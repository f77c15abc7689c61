"""A connection by TCP is lost in every way in which servers, poolers and networks end one: work goes on."""

import select
import socket
import struct
import threading
from contextlib import ExitStack, closing, suppress

import psycopg
import pytest
from psycopg import sql

from tamias.database.connect import Database

RESET = struct.pack("ii", 1, 0)
PATIENCE = 60


def fatal(text):
    """An error after which the server ends the connection."""
    said = {b"S": "FATAL", b"V": "FATAL", b"C": "57P01", b"M": text}
    fields = b"".join(kind + value.encode() + b"\0" for kind, value in said.items()) + b"\0"
    return b"E" + struct.pack(">i", len(fields) + 4) + fields


WORDS = {
    "nothing is said": b"",
    "the server says why": fatal("terminating connection"),
    "a pooler says so too": fatal("terminating connection") + fatal("server conn crashed?"),
}


class Relay:
    """Between clients and a server, as a pooler is. It ends connections when it is told to."""

    def __init__(self, path):
        self._path = path
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._order, self._orders = socket.socketpair()
        self._pairs = {}
        self._is_held = False
        self._words, self._is_reset = b"", False
        self.ended = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def hold(self):
        """Nothing that clients send from now on reaches the server."""
        self._is_held = True

    def end(self, words, *, is_reset):
        """All connections, and waits until it is done."""
        self._words, self._is_reset = words, is_reset
        self.ended.clear()
        self._order.send(b"e")
        assert self.ended.wait(PATIENCE)
        self._is_held = False

    def close(self):
        self._order.send(b"c")
        self._thread.join()
        for each in (self._listening, self._order, self._orders, *self._pairs):
            each.close()

    def _work(self):
        while True:
            ready, _, _ = select.select([self._listening, self._orders, *self._pairs], [], [])
            for each in ready:
                if each is self._listening:
                    self._accept()
                elif each is self._orders:
                    if self._orders.recv(1) == b"c":
                        return
                    self._end_all()
                elif each in self._pairs:
                    self._pass_on(each)

    def _accept(self):
        client, _ = self._listening.accept()
        server = socket.socket(socket.AF_UNIX)
        server.connect(self._path)
        self._pairs |= {client: server, server: client}

    def _pass_on(self, source):
        if self._is_held and source.family == socket.AF_INET:
            return
        target = self._pairs[source]
        with suppress(OSError):
            if data := source.recv(65536):
                target.sendall(data)
                return
        for each in (source, target):
            del self._pairs[each]
            each.close()

    def _end_all(self):
        for each in self._pairs:
            if each.family == socket.AF_INET:
                each.sendall(self._words)
                if self._is_reset:
                    each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            each.close()
        self._pairs.clear()
        self.ended.set()


@pytest.fixture
def relay(administrator):
    with closing(Relay(f"{administrator['host']}/.s.PGSQL.{administrator['port']}")) as made:
        yield made


@pytest.fixture
def session(administrator, relay, tmp_path):
    with ExitStack() as stack:
        boss = stack.enter_context(closing(psycopg.connect(**administrator, autocommit=True)))
        name = sql.Identifier("lost_connections")
        boss.execute(sql.SQL("CREATE DATABASE {}").format(name))
        stack.callback(boss.execute, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))
        url = f"postgresql://boss@127.0.0.1:{relay.port}/lost_connections?sslmode=disable"
        database = stack.enter_context(closing(Database(tmp_path, url)))
        yield stack.enter_context(closing(database.session()))


@pytest.fixture(params=[False, True], ids=["closed", "reset"])
def is_reset(request):
    return request.param


@pytest.fixture(params=WORDS.values(), ids=WORDS)
def words(request):
    return request.param


def test_a_session_connects_again(session, relay, words, is_reset):
    for work in (
        lambda: session.transact(lambda cursor: cursor.execute("SELECT 1").fetchone()),
        lambda: session.fetch_one(b"SELECT 1"),
        lambda: session.fetch_many((b"SELECT 1", None))[0][0],
    ):
        assert work() == (1,)
        relay.end(words, is_reset=is_reset)
        assert work() == (1,)
