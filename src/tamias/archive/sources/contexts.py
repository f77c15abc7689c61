"""JSON-LD contexts as rows: fetched once, for all workers."""

from collections.abc import Sequence
from hashlib import sha256

from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements

_SQL = statements("tamias.archive.sources", "contexts.sql")


def read_contexts(session: Session, addresses: Sequence[str], since: int) -> dict[str, bytes | None]:
    """What has been tried of the wanted ones since a time; None: there was nothing."""
    asked = {"keys": [_key(address) for address in addresses], "since": since}
    rows = session.transact(lambda cursor: cursor.execute(_SQL["read_contexts"].text, asked).fetchall())
    return dict(rows)


def keep_context(cursor: Cursor, address: str, body: bytes | None, now: int) -> None:
    """Keeps one, in the transaction of the visit that brought it."""
    told = {"key": _key(address), "now": now, "body": body, "url": address}
    cursor.execute(_SQL["keep_context"].text, told)


def _key(address: str) -> bytes:
    return sha256(address.encode()).digest()
