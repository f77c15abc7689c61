"""A connection in the hands of an event loop: one prepared statement at a time, no thread waits for it."""

import asyncio
import select
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
from psycopg.pq import Format
from psycopg.pq.abc import PGresult

Done = Callable[[PGresult | None], None]
"""Is told the result, or None where the connection was lost: then it is not known what became of it."""


class LoopConnection:
    """For short statements only. Before a thread uses the connection again, it is released."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._pg = connection.pgconn
        self._loop: asyncio.AbstractEventLoop | None = None
        self._socket = -1
        self._poll = select.poll()
        self._done: Done | None = None
        self._result: PGresult | None = None

    def ask(self, name: str, parameters: Sequence[bytes | None], done: Done) -> bool:
        """Whether the statement was sent; if so, `done` is called once it is committed."""
        try:
            formats = [Format.BINARY] * len(parameters)
            self._pg.send_query_prepared(name.encode(), parameters, formats, Format.BINARY)
            if self._loop is None:
                self._watch()
            self._write()
        except psycopg.OperationalError:
            return False
        self._done = done
        return True

    def release(self) -> None:
        """The loop looks at the connection no more."""
        if self._loop is not None:
            self._poll.unregister(self._socket)
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._loop = None

    def _watch(self) -> None:
        self._loop, self._socket = asyncio.get_running_loop(), self._pg.socket
        self._poll.register(self._socket, select.POLLIN)
        self._loop.add_reader(self._socket, self._read)

    def _write(self) -> None:
        assert self._loop is not None
        if self._pg.flush():
            self._loop.add_writer(self._socket, self._write_on)

    def _read(self) -> None:
        """Reads all that is there: when a connection is reset, uvloop calls once more and never again."""
        try:
            self._read_results()
            while self._loop is not None and self._poll.poll(0):
                self._read_results()
        except psycopg.OperationalError:
            self.release()
            self._tell(None)

    def _read_results(self) -> None:
        self._pg.consume_input()
        while not self._pg.is_busy():
            result = self._pg.get_result()
            if result is None:  # only now it is committed
                self._tell(self._result)
                return
            self._result = result

    def _write_on(self) -> None:
        assert self._loop is not None
        self._loop.remove_writer(self._socket)
        try:
            self._write()
        except psycopg.OperationalError:
            self.release()
            self._tell(None)

    def _tell(self, result: PGresult | None) -> None:
        done, self._done, self._result = self._done, None, None
        if done is not None:
            done(result)
