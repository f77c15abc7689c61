"""Brings documents to sinks outside, after the commit: what is due is claimed, delivered and settled.

A delivery may be repeated, so it replaces what the document had there before. The latest capture wins.
"""

import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol
from uuid import UUID

import msgspec

from tamias.database.connect import Session
from tamias.database.disk import write_errors
from tamias.model.capture import CaptureRecord, Extent
from tamias.model.errors import ConfigError, TamiasError
from tamias.model.faults import reached
from tamias.model.item import NEVER
from tamias.plugins import find
from tamias.sinks.outbox import Edition, Outbox, OutboxClaim, Settled
from tamias.sinks.segments.segment_files import SegmentError

HOLD_SECONDS = 60.0
CLAIMED_AT_ONCE = 20
MOST_TRIES = 8
LONGEST_WAIT = 60.0
IDLE_SECONDS = 0.5

Beat = Callable[[], None]
"""To be called every now and then in a long delivery; raises `HoldLost` when it is somebody else's now."""

Describe = Callable[[int, Sequence[UUID]], list[CaptureRecord]]
"""Attempts of a bucket by their ids."""

Read = Callable[[Extent], Iterable[bytes]]
"""The plain N-Quads that stand there."""


class SinkError(TamiasError):
    """A sink did not take a document."""


class SinkAway(SinkError):
    """The sink cannot be reached at this moment, for whatever document."""

    retry_can_help = True

    def __init__(self, message: str, seconds: float | None = None) -> None:
        """`seconds` is how long the sink asked us to wait."""
        super().__init__(message)
        self.seconds = seconds


class SinkStumbled(SinkError):
    """The sink failed over this document; it may do better the next time."""

    retry_can_help = True


class DocumentRefused(SinkError):
    """The sink does not take this document, however often it is asked."""


class HoldLost(SinkError):
    """The document was given to somebody else meanwhile."""

    retry_can_help = True


class GraphSink(Protocol):
    """A place outside that keeps the current state of every document."""

    def deliver(self, edition: Edition, nquads: Iterable[bytes], beat: Beat) -> None:
        """Replaces all that the document had there; without quads, takes it away. May be called twice.

        Raises `SinkAway`, `SinkStumbled` or `DocumentRefused`; what `beat` raises passes through.
        """
        ...

    def describe(self, records: Sequence[CaptureRecord], beat: Beat) -> None:
        """Adds what is known of attempts beside the documents. May be called twice for one. Raises the same.

        A sink without this method gets no metadata.
        """
        ...

    def sync(self) -> None:
        """Makes all deliveries so far durable; called before they are marked as done."""
        ...

    def close(self) -> None:
        """Lets go of it. May be called twice."""
        ...


class DeliveryProgress(msgspec.Struct, kw_only=True):
    """The result of a round of deliveries."""

    delivered: int = 0
    put_off: int = 0
    refused: int = 0
    trouble: str | None = None
    """The latest thing that went wrong, in words."""
    wait: float = 0.0
    """How long the sink should be left alone; 0: there may be more to do at once."""


class Deliverer:
    """Delivers to one sink. One for each thread; any number for one sink."""

    def __init__(
        self,
        outbox: Outbox,
        sink: GraphSink,
        read: Read,
        hold_seconds: float = HOLD_SECONDS,
        *,
        describe: Describe = lambda _bucket, _ids: [],
    ) -> None:
        self._outbox = outbox
        self._sink = sink
        self._read = read
        self._describe = describe
        self._hold_seconds = hold_seconds
        self._claims: dict[bytes, OutboxClaim] = {}
        self._renew_at = 0.0
        self._failures = 0

    def run(self, ending: threading.Event, tell: Callable[[DeliveryProgress], None] = lambda _: None) -> None:
        """Delivers until the event is set; then finishes the round it is in."""
        while not ending.is_set():
            progress = self.round()
            tell(progress)
            ending.wait(progress.wait)

    def round(self) -> DeliveryProgress:
        """Claims some documents that are due and delivers them; what could not be delivered is due later."""
        claims = self._outbox.claim(CLAIMED_AT_ONCE, self._hold_seconds)
        self._claims = {claim.key: claim for claim in claims}
        self._renew_at = time.monotonic() + self._hold_seconds / 3
        progress = DeliveryProgress(wait=0.0 if claims else IDLE_SECONDS)
        settled: list[Settled] = []
        try:
            described = self._describe_all([claim for claim in claims if claim.is_metadata])
            for claim in claims:
                if claim.key in described:
                    progress.delivered += 1
                    settled.append(Settled(claim, due=NEVER))
                elif progress.wait:  # the sink went away
                    settled.append(self._later(claim, progress.wait))
                else:
                    settled.append(self._attempt(claim, progress))
            self._sink.sync()
            reached("delivered")
        except BaseException:
            self._settle([self._later(claim, 0.0) for claim in claims])
            raise
        self._settle(settled)
        return progress

    def _attempt(self, claim: OutboxClaim, progress: DeliveryProgress) -> Settled:
        try:
            self._beat_for(claim.key)
            self._deliver(claim)
        except SinkAway as away:
            self._failures += 1
            progress.wait = away.seconds or min(LONGEST_WAIT, 0.25 * 2 ** min(self._failures, 10))
            progress.trouble = str(away)
            progress.put_off += 1
            return self._later(claim, progress.wait)
        except (DocumentRefused, SinkStumbled, SegmentError, HoldLost) as error:
            progress.trouble = f"{claim.edition.document}: {error}"
            return self._failed(claim, error, progress)
        self._failures = 0
        progress.delivered += 1
        return Settled(claim, due=NEVER)

    def _describe_all(self, claims: list[OutboxClaim]) -> set[bytes]:
        """Delivers metadata together, as there is much of it; what fails that way is tried one by one."""
        try:
            self._deliver_metadata(claims)
        except SinkError:
            return set()
        return {claim.key for claim in claims}

    def _deliver_metadata(self, claims: list[OutboxClaim]) -> None:
        add = getattr(self._sink, "describe", None)
        if add is None or not claims:
            return
        records: list[CaptureRecord] = []
        for bucket in sorted({claim.bucket for claim in claims}):
            ids = [claim.edition.capture for claim in claims if claim.bucket == bucket]
            records += self._describe(bucket, ids)
        add(records, lambda: self._beat_for(claims[0].key))

    def _deliver(self, claim: OutboxClaim) -> None:
        if claim.is_metadata:
            self._deliver_metadata([claim])
            return
        extent = claim.edition.extent
        nquads = self._read(extent) if extent else ()
        self._sink.deliver(claim.edition, nquads, lambda: self._beat_for(claim.key))

    def _failed(self, claim: OutboxClaim, error: TamiasError, progress: DeliveryProgress) -> Settled:
        tries = claim.tries + 1
        if error.retry_can_help and tries < MOST_TRIES:
            progress.put_off += 1
            return Settled(claim, due=self._outbox.now() + min(300, 2**tries) * 1000, tries=tries)
        progress.refused += 1
        return Settled(claim, due=NEVER, tries=tries, problem=str(error))

    def _later(self, claim: OutboxClaim, seconds: float) -> Settled:
        return Settled(claim, due=self._outbox.now() + int(seconds * 1000), tries=claim.tries)

    def _beat_for(self, key: bytes) -> None:
        """Keeps the claims of this round ours, if they still are."""
        if time.monotonic() >= self._renew_at:
            renewed = self._outbox.renew(list(self._claims.values()), self._hold_seconds)
            self._claims = {claim.key: claim for claim in renewed}
            self._renew_at = time.monotonic() + self._hold_seconds / 3
        if key not in self._claims:
            raise HoldLost("the delivery took so long that it was given to somebody else")

    def _settle(self, settled: list[Settled]) -> None:
        """Settle deliveries with the ends that their holds have by now."""
        self._outbox.settle(
            [
                msgspec.structs.replace(each, claim=self._claims.get(each.claim.key, each.claim))
                for each in settled
            ]
        )


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """The context of a sink."""

    data: Path
    session: Session
    """Of the thread that delivers."""
    sink: int
    """The number that `add_sink` gave."""
    read: Read
    compress: bool = False
    """Whether files are gzipped, where the format is not packed by itself."""


OpenSink = Callable[[str | None, Surroundings], GraphSink]
"""Makes a sink for a target; None when the user named none."""


def split_sink(text: str) -> tuple[str, str | None]:
    """Name and target of `NAME[:TARGET]`. Raises `ConfigError` for a target that must not be kept as it is.

    >>> split_sink("turtle-files"), split_sink("sparql:http://localhost:7878/store")
    (('turtle-files', None), ('sparql', 'http://localhost:7878/store'))
    """
    name, _, target = text.partition(":")
    check = find("sink_targets", name)
    return name, check(target) if check is not None else target or None


def try_sink(text: str) -> None:
    """Raise `ConfigError` for a sink that cannot be used at all; a server that is away may come back."""
    name, target = split_sink(text)
    trial = find("sink_trials", name)
    if trial is not None and target is not None:
        trial(target)
    elif target and name.endswith("-files"):
        with write_errors(target, ConfigError):
            os.makedirs(target, exist_ok=True)
