"""Makes the versions of resources that no longer change smaller, and frees the packs that this empties.

It can be killed at any moment: every body is there in its old form or its new one.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from tamias.archive.blobs import BlobDamaged, BlobLost, BlobMissing, BlobWriter
from tamias.archive.blobs.blob import Blob, Codec
from tamias.archive.blobs.collect import LEAST_USED_AFTER_REPACK, FreedSpace, free_packs, recover
from tamias.archive.blobs.packs import PackError, StoreUnavailable
from tamias.archive.blobs.store import packs_of
from tamias.archive.blobs.table import read_blobs
from tamias.archive.file_store import file_store
from tamias.archive.moved_captures import move_captures
from tamias.archive.references import ColdResource, cold_resources
from tamias.archive.sources.revisits import read_figure, write_figure
from tamias.database.advisory import alone_on_database
from tamias.database.connect import Database, Session
from tamias.database.disk import make_data_folder, opened, try_alone
from tamias.database.embedded_server import Embedded
from tamias.database.months import first_id, months_before
from tamias.features.repack.recode import Recoded, can_recode, recode_alike, recode_versions
from tamias.features.repack.segments import merge_segments, seal_left
from tamias.model.errors import DataInUse, TamiasError, UsageError

AT_ONCE = 500
"""Resources that are looked at together; small files of one host are sought among them."""
GROWTH = 0.25
"""Of its versions: a resource is repacked again when so many have come since."""
STRETCH_BYTES = 256 * 1024 * 1024
"""Of versions that share a key frame: this bounds the time until something is done."""
SMALL_BYTES = 64 * 1024
"""A file with one version that is no larger is packed together with others of its host."""
LEAST_ALIKE = 4
MERGE_SECONDS = 10.0
"""Of CPU time after a crawl or an import: 4 GB of statements."""
CACHE_BYTES = 64 * 1024 * 1024
SLOWNESS = 10
"""Seconds that may pass for each of CPU time: a run that waits for a slow store ends as well."""
_FIGURE = "repacked_until"
_TO_FREE = "packs_to_free"
"""Whether a run has moved bodies, and the packs that this emptied are not freed yet."""
_log = logging.getLogger(__name__)
_Recode = Callable[[BlobWriter, Session, Sequence[str]], Recoded]


class Repacked(msgspec.Struct, kw_only=True):
    """The result of a run."""

    resources: int = 0
    versions: int = 0
    before: int = 0
    """Bytes that their records took."""
    after: int = 0
    freed: FreedSpace = msgspec.field(default_factory=FreedSpace)
    segments: int = 0
    """Merged into others."""
    segment_bytes: int = 0
    """How many fewer they take."""
    captures: int = 0
    """Moved to files."""
    complete: bool = False
    """Whether all resources that were due were looked at."""


def repack(
    database: Database, data: Path, *, after: float, seconds: float | None = None, again: bool = False,
    months: int = 0,
) -> Repacked:  # fmt: skip
    """Repacks what has not changed for `after` seconds, from where the last run ended, or `again` all.

    Captures older than so many `months`, if any, are moved to files.

    Ends when all is done, or after so many `seconds` of CPU time. Raises `DataInUse` if another is at work,
    and `StoreUnavailable`: the next run goes on with the resource that could not be read then.
    """
    make_data_folder(data)
    with opened(data / "repack.lock") as lock, closing(_Repacker(database, data)) as repacker:
        if not try_alone(lock):
            raise DataInUse(f"another repack of {data} is running")
        return repacker.run(database.embedded, after, seconds, again=again, months=months)


class _Repacker:
    def __init__(self, database: Database, data: Path) -> None:
        self._data = data
        self._session = database.session()
        self._rows = database.session()
        self._writer = BlobWriter(packs_of(self._session, data), self._session, cache_bytes=CACHE_BYTES)
        self._to_free = bool(read_figure(self._rows, _TO_FREE))
        self._done = Repacked()

    def close(self) -> None:
        self._writer.close()
        self._session.close()
        self._rows.close()

    def run(
        self, embedded: Embedded | None, after: float, seconds: float | None, *, again: bool, months: int
    ) -> Repacked:
        if self._writer.reader.packs.is_borrowed:
            raise UsageError(
                "this archive is a copy, and its bodies are in the store of another: nothing is repacked; "
                "if the other is lost, restore with --take-over"
            )
        with alone_on_database(self._rows, "repack") as alone:
            if not alone:
                raise DataInUse("another machine repacks the store of this archive")
            if embedded is not None:
                seal_left(self._session, embedded.workers())
            if months:  # but the last complete ones
                now = datetime.fromtimestamp(self._rows.now() / 1000, UTC)
                for moved in move_captures(self._rows, first_id(months_before(now, months))):
                    self._done.captures += moved.captures
            recover(self._writer.reader.packs, self._rows)
            before = self._session.now() - int(1000 * after)
            captured_at, resource = (None if again else read_figure(self._rows, _FIGURE)) or (0, "")
            is_over = _time_is_up(seconds)
            self._done.complete = self._repack_all(before, (int(captured_at), str(resource)), is_over)
            self._free()
            for done in _merge(self._rows, self._data, before, is_over, 0.0 if seconds is None else GROWTH):
                self._done.segments += done.blobs
                self._done.segment_bytes += done.before - done.after
        return self._done

    def _repack_all(self, before: int, place: tuple[int, str], is_over: Callable[[], bool]) -> bool:
        """Page after page from a place on; whether it came to the end."""
        while page := cold_resources(self._rows, before, place, AT_ONCE):
            for each in self._repack_page(page):
                place = (each.captured_at, each.resource)
                if is_over():
                    break
            write_figure(self._rows, _FIGURE, list(place), self._session.now())
            if not self._writer.reader.packs.is_elsewhere:
                self._free()
            if place != (page[-1].captured_at, page[-1].resource):
                return False
        return True

    def _repack_page(self, page: Sequence[ColdResource]) -> Iterator[ColdResource]:
        """Gives each resource that is done."""
        known = read_blobs(self._rows, [sha256 for each in page for sha256 in each.bodies])
        bodies = {
            each.resource: [blob for sha256 in each.bodies if can_recode(blob := known.get(sha256))]
            for each in page
        }
        for alike in _alike(page, bodies):
            self._recode(recode_alike, alike, resources=len(alike))
        for each in page:
            for stretch in _stretches(bodies[each.resource]):
                if _is_due(stretch):
                    self._recode(recode_versions, stretch, resources=1)
            yield each

    def _recode(self, recode: _Recode, blobs: Sequence[Blob], *, resources: int) -> None:
        before = self._to_free
        self._note_to_free(True)  # first, so that a run that is killed is known to have left something
        try:
            done = recode(self._writer, self._rows, [blob.sha256 for blob in blobs])
        except StoreUnavailable:
            raise
        except (BlobDamaged, BlobMissing, BlobLost, PackError) as error:
            # All is as before. A damage is the business of check.
            _log.warning("not repacked: %s", error)
            self._writer.abandon()
            done = Recoded()
        if not done.blobs:
            self._note_to_free(before)
            return
        self._done.resources += resources
        self._done.versions += done.blobs
        self._done.before += done.before
        self._done.after += done.after

    def _note_to_free(self, to_free: bool) -> None:
        if to_free != self._to_free:
            write_figure(self._rows, _TO_FREE, to_free, self._session.now())
            self._to_free = to_free

    def _free(self) -> None:
        """Removes what is not used any more; not while a backup copies packs."""
        if self._writer.reader.packs.is_elsewhere and not self._to_free:
            return  # each pack would cost a request
        self._writer.close()
        with opened(self._data / "packs.lock") as lock, alone_on_database(self._rows, "packs") as held:
            if held and try_alone(lock):
                free_packs(self._writer, self._rows, self._done.freed, LEAST_USED_AFTER_REPACK)
                self._note_to_free(False)
        self._writer.close()


def merge_states(database: Database, data: Path) -> None:
    """Merge new segments at once, fast: what states of a document share is stored once from then on.

    A repack does it again, for less space. Trouble, such as a full disk, leaves them as they are.
    """
    with closing(database.session()) as session:
        if file_store(session, data).is_elsewhere:
            return
        try:
            for _ in _merge(session, data, session.now(), _time_is_up(MERGE_SECONDS), GROWTH, fast=True):
                pass
        except (TamiasError, OSError) as error:
            _log.warning("segments are merged later: %s", error)


def _merge(
    session: Session,
    data: Path,
    before: int,
    is_over: Callable[[], bool],
    growth: float,
    *,
    fast: bool = False,
) -> Iterator[Recoded]:
    """Merge segments; not while a backup copies files."""
    with opened(data / "packs.lock") as lock, alone_on_database(session, "packs") as held:
        if held and try_alone(lock):
            store = file_store(session, data)
            yield from merge_segments(
                session, store, before=before, is_over=is_over, growth=growth, fast=fast
            )


def _time_is_up(seconds: float | None) -> Callable[[], bool]:
    if seconds is None:
        return lambda: False
    worked, passed = time.process_time() + seconds, time.monotonic() + SLOWNESS * seconds
    return lambda: time.process_time() > worked or time.monotonic() > passed


def _alike(page: Sequence[ColdResource], bodies: dict[str, list[Blob]]) -> Iterator[list[Blob]]:
    """Small files of one host that have one version and are not in a group yet."""
    small: dict[str, list[Blob]] = {}
    for each in page:
        match bodies[each.resource]:
            case [blob] if blob.size <= SMALL_BYTES and blob.base is None:
                small.setdefault(each.host, []).append(blob)
    yield from (blobs for blobs in small.values() if len(blobs) >= LEAST_ALIKE)


def _stretches(blobs: Sequence[Blob]) -> Iterator[list[Blob]]:
    """Versions, newest first, divided so that each stretch can be done in bounded time."""
    stretch: list[Blob] = []
    for blob in blobs:
        if stretch and sum(each.size for each in stretch) + blob.size > STRETCH_BYTES:
            yield stretch
            stretch = []
        stretch.append(blob)
    if stretch:
        yield stretch


def _is_due(blobs: Sequence[Blob]) -> bool:
    """Return whether enough versions came since the last time. One of them is the key frame."""
    newer: set[str | None] = set()
    fresh = -1
    for blob in blobs:
        fresh += blob.codec is not Codec.PART and blob.base not in newer
        newer.add(blob.sha256)
    return len(blobs) > 1 and fresh >= max(1, GROWTH * len(blobs))
