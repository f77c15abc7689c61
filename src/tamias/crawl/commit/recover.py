"""Recovery after a dead worker: return its leases, cut torn tails, suspect its documents."""

import logging
import math
import shutil
from pathlib import Path

from tamias.archive.blobs.collect import recover as recover_packs
from tamias.archive.blobs.store import packs_of
from tamias.archive.file_store import file_store
from tamias.archive.stored_files import left_open, seal_file
from tamias.crawl.analysis.marker import left_by
from tamias.database.connect import Database, Session
from tamias.database.disk import alone
from tamias.frontier.postgres import PostgresFrontier
from tamias.plugins import load_all
from tamias.sinks.segments.segment_files import SegmentError, cut_tail, finish_overwriting

_log = logging.getLogger(__name__)


def recover(database: Database, session: Session, frontier: PostgresFrontier, data: Path) -> int:
    """Cleans up after every dead worker; any process may call it at any time. Returns how many were dead."""
    embedded = database.embedded
    if embedded is None:
        return 0  # on a shared server leases end by themselves
    with alone(data / "recover.lock", math.inf):
        dead = embedded.dead_workers()
        for worker in dead:
            recover_worker(session, frontier, data, worker)
            # Last, so that whoever comes after us does it all again if we die before.
            embedded.forget(worker)
        if dead:
            recover_packs(packs_of(session, data), session)
    return len(dead)


def recover_worker(session: Session, frontier: PostgresFrontier, data: Path, worker: int) -> None:
    """Cleans up after one worker that is known to be dead. May be done twice."""
    for place in left_by(data / "analysing", worker):
        frontier.count_death(*place)
    frontier.give_back([worker])
    store = file_store(session, data)
    for kind in ("rdf", "warc"):
        finish_overwriting(store.folder(kind))  # before it is looked for what is torn
    for stored in left_open(session, [worker]):
        if stored.in_store and store.is_elsewhere:
            store.forget_local(stored)  # the store has what was committed of it
        elif stored.kind == "rdf":
            _cut(store.path(stored), stored.committed)
        seal_file(session, stored)
    for complete in load_all("recoveries").values():
        complete(store, worker)
    shutil.rmtree(data / "spool" / str(worker), ignore_errors=True)


def _cut(path: Path, committed: int) -> None:
    try:
        cut_tail(path, committed)
    except SegmentError as error:  # no reason to crawl no more: what can be read of it is read
        _log.warning("%s; 'tamias check --repair' makes due again what is lost", error)
