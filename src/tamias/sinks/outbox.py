"""The outbox: rows of what is to be delivered to sinks, written with the finish, claimed, settled."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from typing import Annotated, Any, TypeVar
from uuid import UUID

import msgspec

from tamias.database.columns import Digests, Longs, RowSchema, Shorts, Texts, Uuids
from tamias.database.connect import Cursor, Session
from tamias.model.capture import CaptureRecord, Column, Extent
from tamias.model.item import NEVER
from tamias.model.vocabulary import ACTIVITIES

_FIRST = UUID(int=0)

T = TypeVar("T")


class Edition(msgspec.Struct, frozen=True):
    """The state of a document after its latest capture."""

    document: Annotated[str, Column("text")]
    """Its final URL."""
    capture: Annotated[UUID, Column("uuid")]
    extent: Extent | None = None
    """Where its quads stand; None when it holds none, or is gone."""


_ROWS = RowSchema(Edition, "outbox")
_SQL = _ROWS.statements("tamias.sinks", "outbox.sql")


class OutboxClaim(msgspec.Struct, frozen=True):
    """A document that is ours to deliver, until the hold ends."""

    bucket: int
    key: bytes
    edition: Edition
    tries: int
    hold: int

    @property
    def is_metadata(self) -> bool:
        """Return whether it is what is known of an attempt, not what a document holds."""
        return self.edition.document.startswith(ACTIVITIES)


class Settled(msgspec.Struct, frozen=True):
    """The result of a claim: due again, or never; with a problem, refused."""

    claim: OutboxClaim
    due: int
    tries: int = 0
    problem: str | None = None

    @property
    def is_delivered(self) -> bool:
        """Return whether the sink has it."""
        return self.due == NEVER and self.problem is None


class OutboxWaiting(msgspec.Struct, frozen=True):
    """The deliveries that a sink waits for."""

    documents: int
    next_at: int | None
    """When the next is due, or its hold ends; in milliseconds."""


def text_key(text: str) -> bytes:
    """The key of a document or graph: the first half of the SHA-256 of its name."""
    return sha256(text.encode("utf-8", "replace")).digest()[:16]


def enqueue(cursor: Cursor, captures: Iterable[tuple[int, CaptureRecord]], sinks: Sequence[int]) -> None:
    """Notes what is to be delivered, inside the transaction of the finish: captures with their buckets."""
    conclusive = sorted((each for each in captures if each[1].tells_content), key=lambda each: each[0])
    if not sinks:
        return
    for bucket, group in groupby(conclusive, key=lambda each: each[0]):
        records = [record for _, record in group]
        cursor.execute(
            _SQL["enqueue"].text, {"bucket": bucket, "sinks": sorted(sinks), **_edition_columns(records)}
        )


def enqueue_metadata(
    cursor: Cursor, captures: Iterable[tuple[int, CaptureRecord]], sinks: Sequence[int]
) -> None:
    """Notes that what is known of attempts is to be delivered, whatever came of them."""
    if not sinks:
        return
    for bucket, group in groupby(sorted(captures, key=itemgetter(0)), key=itemgetter(0)):
        records = [record for _, record in group]
        names = [ACTIVITIES + record.id for record in records]
        columns = {
            "document": Texts(names),
            "document_key": Digests([text_key(name) for name in names]),
            "capture": Uuids([UUID(record.id) for record in records]),
            "due": Longs([record.ended_at for record in records]),
            "started_at": Longs([record.started_at for record in records]),
        }
        cursor.execute(_SQL["enqueue_metadata"].text, {"bucket": bucket, "sinks": sorted(sinks), **columns})


def add_sink(session: Session, name: str, buckets: int) -> int:
    """The number of a sink. What was captured while it was not named is to be delivered to it, too."""

    def work(cursor: Cursor) -> int:
        ((sink,),) = cursor.execute(_SQL["add_sink"].text, {"name": name}).fetchall()
        for bucket in range(buckets):
            place = {"bucket": bucket, "sink": sink}
            latest = cursor.execute(_SQL["latest_told"].text, place).fetchone()
            after = {"after": latest[0] if latest else _FIRST}
            for step in ("catch_up", "catch_up_metadata"):
                cursor.execute(_SQL[step].text, {**place, **after})
        return int(sink)

    return session.transact(work)


def sink_numbers(session: Session, names: Sequence[str] | None = None) -> list[int]:
    """Return the numbers of sinks that were named before; by default of all."""
    return [sink for sink, name in session.fetch_all(_SQL["all_sinks"]) if names is None or name in names]


def give_back(session: Session, workers: Sequence[int], buckets: int) -> None:
    """Make due again what dead workers held."""

    def work(cursor: Cursor) -> None:
        for bucket in range(buckets):
            cursor.execute(_SQL["give_back"].text, {"bucket": bucket, "workers": list(workers), "now": now})

    now = session.now()
    session.transact(work)


class Outbox:
    """The deliveries of one sink. One for each thread; any number on one database."""

    def __init__(self, session: Session, sink: int, *, buckets: int = 1, worker: int | None = None) -> None:
        self._session = session
        self._sink = sink
        self._buckets = buckets
        self._worker = worker
        self._turn = 0
        self.now: Callable[[], int] = session.now

    def claim(self, most: int, seconds: float) -> list[OutboxClaim]:
        """Claim up to so many due documents, oldest first; nobody else gets them meanwhile."""
        claims: list[OutboxClaim] = []
        for bucket in self._bucket_turn():
            claims += self._claim_bucket(bucket, most - len(claims), seconds)
            if len(claims) >= most:
                break
        return claims

    def renew(self, claims: Sequence[OutboxClaim], seconds: float) -> list[OutboxClaim]:
        """The same claims with a later end. One that does not come back is lost."""
        renewed: list[OutboxClaim] = []
        until = self.now() + int(seconds * 1000)
        for bucket, group in _by_bucket(claims, lambda claim: claim):
            columns = {
                "document_key": Digests([c.key for c in group]),
                "hold": Longs([c.hold for c in group]),
                "until": until,
            }
            held = {row[0] for row in self._ask("renew", bucket, columns)}
            renewed += [msgspec.structs.replace(claim, hold=until) for claim in group if claim.key in held]
        return renewed

    def settle(self, news: Sequence[Settled]) -> None:
        """Writes what became of claims; of one that was lost, or is delivered twice, nothing changes."""
        described = [each for each in news if each.claim.is_metadata and each.is_delivered]
        for bucket, claims in _by_bucket([each.claim for each in described], lambda claim: claim):
            columns = {
                "document_key": Digests([claim.key for claim in claims]),
                "hold": Longs([claim.hold for claim in claims]),
            }
            self._session.transact(partial(self._execute, "forget_metadata", bucket, columns))
        others = [each for each in news if not (each.claim.is_metadata and each.is_delivered)]
        for bucket, group in _by_bucket(others, lambda each: each.claim):
            columns = {"now": self.now(), **_settled_columns(group)}
            self._session.transact(partial(self._execute, "settle", bucket, columns))

    def waiting(self) -> OutboxWaiting:
        """Return how many documents are not delivered yet."""
        rows = [row for bucket in range(self._buckets) for row in self._ask("waiting", bucket, {})]
        nexts = [row[1] for row in rows if row[1] is not None]
        return OutboxWaiting(sum(row[0] for row in rows), min(nexts, default=None))

    def refused(self, most: int = 100) -> list[tuple[str, str]]:
        """Documents that the sink does not take, and why."""
        return [
            (document, problem)
            for bucket in range(self._buckets)
            for document, problem in self._ask("refused", bucket, {"most": most})
        ]

    def _bucket_turn(self) -> Iterator[int]:
        self._turn += 1
        for step in range(self._buckets):
            yield (self._turn + step) % self._buckets

    def _claim_bucket(self, bucket: int, most: int, seconds: float) -> list[OutboxClaim]:
        now = self.now()
        hold = now + int(seconds * 1000)
        values = {"now": now, "hold": hold, "worker": self._worker, "most": most}
        rows = self._ask("claim", bucket, values)
        return [
            OutboxClaim(bucket, key, _ROWS.decode(edition), tries, hold)
            for _, key, tries, *edition in sorted(rows, key=itemgetter(0, 1))
        ]

    def _ask(self, name: str, bucket: int, columns: dict[str, Any]) -> list[tuple[Any, ...]]:
        return self._session.transact(lambda cursor: self._execute(name, bucket, columns, cursor).fetchall())

    def _execute(self, name: str, bucket: int, columns: dict[str, Any], cursor: Cursor) -> Cursor:
        return cursor.execute(_SQL[name].text, {"bucket": bucket, "sink": self._sink, **columns})


def _edition_columns(records: list[CaptureRecord]) -> dict[str, list[Any]]:
    editions = [Edition(record.final_url, UUID(record.id), record.held) for record in records]
    return {
        **_ROWS.parameters(editions),
        "document_key": Digests([text_key(record.final_url) for record in records]),
        "due": Longs([record.ended_at for record in records]),
        "started_at": Longs([record.started_at for record in records]),
    }


def _settled_columns(news: list[Settled]) -> dict[str, list[Any]]:
    return {
        "document_key": Digests([each.claim.key for each in news]),
        "capture": Uuids([each.claim.edition.capture for each in news]),
        "hold": Longs([each.claim.hold for each in news]),
        "due": Longs([each.due for each in news]),
        "tries": Shorts([each.tries for each in news]),
        "problem": Texts([each.problem for each in news]),
    }


def _by_bucket(things: Sequence[T], claim: Callable[[T], OutboxClaim]) -> Iterator[tuple[int, list[T]]]:
    ordered = sorted(things, key=lambda thing: (claim(thing).bucket, claim(thing).key))
    for bucket, group in groupby(ordered, key=lambda thing: claim(thing).bucket):
        yield bucket, list(group)
