"""URLs that are put one by one, by the event loop itself: no thread is woken or waited for."""

import struct
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from psycopg.pq import DiagnosticField, ExecStatus
from psycopg.pq.abc import PGresult

from tamias.database.connect import Session
from tamias.database.loop_connection import LoopConnection
from tamias.frontier.put import UrlPut
from tamias.frontier.queries import with_numbers
from tamias.model.errors import DatabaseUnavailable
from tamias.model.item import Item

_STATEMENT = "put_one"
_READY_SECONDS = 60.0
"""So long the time of the database is believed; then the thread reads it again."""
_TEXT, _PARAMETERS = with_numbers(_STATEMENT)
_NEW = b"\x01"
_NO_SUCH_STATEMENT = b"26000"

_NUMBERS: dict[str, Callable[[Any], bytes]] = {
    name: struct.Struct(">" + code).pack
    for code, names in (
        ("h", ("bucket", "class", "depth", "cut")), ("i", ("crawl", "lane")), ("?", ("durable",)),
        ("q", ("now", "qid", "uid", "due")), ("d", ("score",)),
    )
    for name in names
}  # fmt: skip


class SinglePut:
    """Works over the session of a thread while that is idle."""

    def __init__(self, session: Session, put: UrlPut) -> None:
        self._session = session
        self._put = put
        self._connection: LoopConnection | None = None
        self._opened = 0
        self._ready_until = 0.0

    def make_ready(self) -> None:
        """By the thread itself, when it has put something. What was put is put, also where this fails."""
        with suppress(DatabaseUnavailable):
            self._session.now()
            self._ready_until = time.monotonic() + _READY_SECONDS
        if self._opened != self._session.opened:
            self._connection = self._session.lend(_STATEMENT, _TEXT)
            self._opened = self._session.opened

    def begin(self, item: Item, durable: bool, done: Callable[[bool], None]) -> bool:
        """Whether the URL is being put; then `done` is told whether it was. If not, the thread must do it."""
        if self._connection is None or time.monotonic() > self._ready_until:
            return False
        asked = self._put.one_new(item, self._session.time())
        if asked is None:
            return False
        asked["durable"] = durable
        parameters = [_written(name, asked[name]) for name in _PARAMETERS]
        return self._connection.ask(_STATEMENT, parameters, lambda result: done(self._is_new(result)))

    def release(self) -> None:
        """The thread may work again."""
        if self._connection is not None:
            self._connection.release()

    def _is_new(self, result: PGresult | None) -> bool:
        if result is None:
            return False
        if result.status == ExecStatus.TUPLES_OK:
            return result.get_value(0, 0) == _NEW
        if result.error_field(DiagnosticField.SQLSTATE) == _NO_SUCH_STATEMENT:
            self._opened = 0  # after a rollback psycopg has the server forget all statements: prepared again
        return False


def _written(name: str, value: Any) -> bytes | None:
    if value is None:
        return None
    pack = _NUMBERS.get(name)
    return value.encode() if pack is None else pack(value)
