"""Robots rules in the database, so that workers share them and a restart forgets nothing."""

import msgspec

from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.permit.delay import host_delay_ms
from tamias.permit.robots import Rules

_SQL = statements("tamias.permit", "robots.sql")


class KnownRobots(msgspec.Struct, frozen=True):
    """The rules of an authority, and until when (milliseconds) they hold."""

    rules: Rules
    expires_at: int


class RobotsStore:
    """Reads and writes the rules of authorities. For one thread, as its session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def read(self, bucket: int, qid: int, authority: str) -> KnownRobots | None:
        """The rules, unless unknown or expired."""
        parameters = {"bucket": bucket, "qid": qid, "authority": authority, "now": self._session.now()}
        row = self._session.fetch_one(_SQL["read_robots"], parameters, bucket)
        return None if row is None else KnownRobots(msgspec.msgpack.decode(row[0], type=Rules), row[1])

    def write(
        self, bucket: int, qid: int, authority: str, rules: Rules, status: int | None, seconds: int
    ) -> KnownRobots:
        """Keep rules for some seconds from now."""
        now = self._session.now()
        parameters = {
            "bucket": bucket,
            "qid": qid,
            "authority": authority,
            "fetched_at": now,
            "expires_at": now + seconds * 1000,
            "status": status,
            "rules": msgspec.msgpack.encode(rules),
        }
        wanted = {"bucket": bucket, "qid": qid, "delay_ms": host_delay_ms(0, rules.crawl_delay, True)}

        def work(cursor: Cursor) -> None:
            cursor.execute(_SQL["write_robots"].text, parameters)
            cursor.execute(_SQL["slow_host"].text, wanted)

        if wanted["delay_ms"]:
            self._session.transact(work, bucket)
        else:
            self._session.execute(_SQL["write_robots"], parameters, bucket)
        return KnownRobots(rules, now + seconds * 1000)
