"""Removes what has a tombstone, everywhere: rows, bodies, quads, WARC records, the catalogue.

The tombstone comes first and says that it is under way. Each step may be repeated, and the last one says
that it is finished: whoever comes after a process that was killed does all steps again.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from itertools import groupby
from pathlib import Path

from tamias import plugins
from tamias.archive.blobs import BlobWriter
from tamias.archive.blobs.collect import LEAST_USED_AFTER_REPACK, FreedSpace, free_packs
from tamias.archive.blobs.store import packs_of
from tamias.archive.blobs.table import read_blobs
from tamias.archive.captures import count_buckets
from tamias.archive.moments import digits, rfc3339
from tamias.archive.tombstones import Tombstone, marks_key, spellings, under_way
from tamias.crawl.plan.admit import Admission, same_url
from tamias.database.advisory import alone_on_database
from tamias.database.columns import Digests, Longs, Texts
from tamias.database.connect import Database, Session
from tamias.database.disk import alone, make_data_folder, opened, try_alone
from tamias.features.forgetting.erase_blobs import Forgetting, erase_records, take_out
from tamias.features.forgetting.files import ErasableFiles
from tamias.features.forgetting.rows import (
    SQL,
    CoveredRows,
    find_covered,
    note_bodies,
    remove_rows,
)
from tamias.features.warc.cdxj import timestamp
from tamias.frontier.due import retire
from tamias.frontier.keys import own_queue
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.capture import Extent
from tamias.model.errors import DatabaseError, TamiasError, UrlError
from tamias.model.faults import reached
from tamias.model.url import host, host_key
from tamias.settings import Settings
from tamias.sinks.segments.segment_files import SegmentReader

WAIT_SECONDS = 3600.0
CACHE_BYTES = 64 << 20
SMALL_TABLE = 64 << 20
"""Bytes of a table up to which it is written anew, so that nothing is left in its free space."""

_SMALL_TABLES = (
    "profile", "findable", "source_record", "described", "offered", "earlier_description", "link", "context",
    "source", "suspect",
)  # fmt: skip
_LARGE_TABLES = ("capture", "current_document", "resource", "version")


class Forgetter:
    """Works for one data directory. One at a time: others wait."""

    def __init__(self, database: Database, data: Path, settings: Settings) -> None:
        self._database = database
        self._data = data
        self._settings = settings
        self._admission = Admission(settings, ())
        self._session = database.session()
        self._rows = database.session()
        self._files = ErasableFiles(self._rows, data)
        self._buckets = count_buckets(self._rows)
        self._done = Forgetting()

    def close(self) -> None:
        """Lets go of the database."""
        self._session.close()
        self._rows.close()

    def run(self) -> Forgetting:
        """Finishes all that is under way. What cannot be done now is named in `remains`."""
        make_data_folder(self._data)
        with alone(self._data / "forget.lock", WAIT_SECONDS):
            self._files.finish()
            self._done = Forgetting()
            wanted = under_way(self._rows)
            self._done.tombstones = len(wanted)
            if wanted:
                self._forget(wanted)
            self._erase_captures()
            return self._done

    def _forget(self, wanted: Sequence[Tombstone]) -> None:
        busy: set[int] = set()
        writer = BlobWriter(packs_of(self._session, self._data), self._session, cache_bytes=CACHE_BYTES)
        try:
            for each in wanted:
                covered = self._remove_rows(each, writer)
                reached("forget-rows")
                if self._is_leased(covered):
                    busy.add(each.forgotten)
            self._erase_bodies(wanted, writer)
        finally:
            writer.close()
        self._erase_quads()
        self._erase_warc(wanted)
        self._files.free_parts()
        if not all(each.by_rule for each in wanted):
            for erase in plugins.load_all("erasers").values():
                self._done.remains += erase(self._database, self._data, self._settings)
            reached("forget-catalogue")
            self._clean_database()
        self._finish(wanted, busy)

    def _remove_rows(self, tombstone: Tombstone, writer: BlobWriter) -> CoveredRows:
        urls, documents = addresses(tombstone), self._documents(tombstone)
        covered = find_covered(self._rows, tombstone, documents, self._queues(documents), self._buckets)
        key = marks_key(self._rows)
        with SegmentReader(self._files.open_segment) as reader:

            def read(extent: Extent) -> Iterator[bytes]:
                with suppress(TamiasError):  # a damage is the business of check
                    yield from reader.read(extent)

            note_bodies(self._rows, tombstone, covered, urls, key, writer.reader, read)
        is_found = tombstone.number is not None or tombstone.is_record or covered.bodies or covered.captures
        noted = {"forgotten": [tombstone.forgotten]}  # also by a run that was interrupted
        if not (is_found or self._rows.fetch_all(SQL["bodies"], noted)):
            self._done.not_stored.append(tombstone.url)
        reached("forget-noted")
        now = self._rows.now()
        self._rows.transact(lambda cursor: remove_rows(cursor, tombstone, covered, urls, now))
        if tombstone.blocked and not tombstone.is_record:
            self._retire(urls)
        return covered

    def _documents(self, tombstone: Tombstone) -> list[str]:
        """Return where its statements may stand: those of a record are in the documents of its catalogue."""
        found = spellings(tombstone.url)
        if tombstone.is_record:
            rows = self._rows.fetch_all(SQL["portals_of_record"], {"resource": tombstone.resource})
            found += [row[0] for row in rows]
        return list(dict.fromkeys(found))

    def _retire(self, urls: Sequence[str]) -> None:
        names = frozenset(self._settings.filters.session_names)
        frontier = PostgresFrontier(self._rows, same_url=same_url(names))
        crawls = [row[0] for row in self._rows.fetch_all(SQL["crawls_of"])]
        with suppress(UrlError):
            items = [self._admission.item(url, 0, crawl) for url in urls for crawl in crawls]
            retire(self._rows, frontier, items)

    def _queues(self, urls: Sequence[str]) -> list[str]:
        """The keys that the queue of an address may have."""
        crawls = [row[0] for row in self._rows.fetch_all(SQL["crawls_of"])]
        keys = {name for url in urls for name in (host(url), host_key(url), self._admission.queue(url))}
        return [*keys, *(own_queue(crawl, key) for crawl in crawls for key in keys)]

    def _is_leased(self, covered: CoveredRows) -> bool:
        """Return whether somebody is at work at its host, who may have fetched it before it was forgotten."""
        now = self._rows.now()
        return any(
            self._rows.fetch_one(SQL["leased"], {"bucket": bucket, "qid": qids, "now": now}) == (True,)
            for bucket, qids in covered.qids.items()
        )

    def _erase_bodies(self, wanted: Sequence[Tombstone], writer: BlobWriter) -> None:
        rows = self._rows.fetch_all(SQL["bodies"], {"forgotten": [each.forgotten for each in wanted]})
        self._done.shared += [shared_by for *_, shared_by in rows if shared_by is not None]
        gone = list({row[1]: None for row in rows if row[-1] is None})
        # First what leans on others: so nothing is coded anew that goes as well.
        for blob in sorted(read_blobs(self._rows, gone).values(), key=lambda blob: -blob.depth):
            take_out(writer, self._rows, blob.sha256, self._done)
        erase_records(writer, self._rows, gone, self._done)
        if any(each.by_rule for each in wanted):
            self._free_packs(writer)

    def _free_packs(self, writer: BlobWriter) -> None:
        """Rules are there to save space; not while a backup copies packs."""
        with opened(self._data / "packs.lock") as lock, alone_on_database(self._rows, "packs") as held:
            if held and try_alone(lock):
                free_packs(writer, self._rows, FreedSpace(), LEAST_USED_AFTER_REPACK)
        writer.close()

    def _erase_quads(self) -> None:
        rows = self._rows.fetch_all(SQL["quads_left"])
        for segment, some in groupby(rows, key=lambda row: row[0]):
            left = self._files.erase_quads(segment, [Extent(*row) for row in some])
            if left is not None:
                self._done.remains.append(left)
                continue
            self._done.segments += 1
            reached("forget-quads")
            self._rows.execute(SQL["quads_erased"], {"segment": segment})

    def _erase_warc(self, wanted: Sequence[Tombstone]) -> None:
        taken = [each for each in wanted if not each.by_rule]
        if not taken:
            return
        erased, left = self._files.erase_warc(UnwantedRecords(self._rows, taken))
        self._done.warc_records += erased
        self._done.remains += left
        reached("forget-warc")

    def _erase_captures(self) -> None:
        """Records of WARC files that rules do not keep."""
        left = self._rows.fetch_all(SQL["captures_left"])
        if not left:
            return
        dropped = {(url, sha256, digits(at)) for url, at, sha256 in left}
        erased, remains = self._files.erase_warc(
            lambda url, sha256, date: (url, sha256, timestamp(date)) in dropped
        )
        self._done.warc_records += erased
        self._done.remains += remains
        reached("retention-warc")
        if not remains:
            urls, times, bodies = zip(*left, strict=True)
            done = {"url": Texts(urls), "captured_at": Longs(times), "sha256": Digests(bodies)}
            self._rows.execute(SQL["captures_erased"], done)

    def _clean_database(self) -> None:
        """Vacuum the tables: deleted rows stay in their files until then."""
        embedded = self._database.embedded is not None
        for table in (*_SMALL_TABLES, *_LARGE_TABLES):
            with suppress(DatabaseError):  # a lock that others hold; what is left is overwritten by and by
                size = self._rows.fetch_one(f"SELECT pg_total_relation_size('tamias.{table}')".encode())
                small = embedded and table in _SMALL_TABLES and size is not None and size[0] <= SMALL_TABLE
                self._rows.execute(b"SET lock_timeout = '2s'")
                self._rows.execute(f"VACUUM {'(FULL)' if small else ''} tamias.{table}".encode())
        with suppress(DatabaseError):
            self._rows.execute(b"CHECKPOINT")
        self._rows.execute(b"RESET lock_timeout")
        reached("forget-database")

    def _finish(self, wanted: Sequence[Tombstone], busy: set[int]) -> None:
        left = {each.forgotten for each in wanted} if self._done.remains else busy
        if busy:
            self._done.remains.append("a visit to its host is under way")
        remains = "; ".join(dict.fromkeys(self._done.remains))[:1000]
        self._rows.execute(SQL["note_remains"], {"remains": remains, "forgotten": list(left)})
        finished = [each.forgotten for each in wanted if each.forgotten not in left]
        self._rows.execute(SQL["finish"], {"now": self._rows.now(), "forgotten": finished})
        self._done.finished = len(finished)


class UnwantedRecords:
    """The test whether a WARC record is of what was forgotten."""

    def __init__(self, session: Session, wanted: Sequence[Tombstone]) -> None:
        rows = session.fetch_all(SQL["bodies"], {"forgotten": [each.forgotten for each in wanted]})
        bodies: dict[int, set[str]] = {}
        for number, sha256, *_ in rows:
            bodies.setdefault(number, set()).add(sha256)
        self._of_url: dict[str, list[tuple[Tombstone, set[str]]]] = {}
        for each in wanted:
            for url in addresses(each):
                self._of_url.setdefault(url, []).append((each, bodies.get(each.forgotten, set())))

    def __call__(self, url: str, sha256: str, date: str) -> bool:
        """Judge by URL, SHA-256 of the payload, and WARC date or its digits, as precise as they are."""
        moment = re.sub(r"\D", "", date)[:17]
        for tombstone, bodies in self._of_url.get(url, ()):
            if tombstone.number is not None:
                if sha256 in bodies:
                    return True
            elif tombstone.blocked or moment <= re.sub(r"\D", "", rfc3339(tombstone.at))[: len(moment)]:
                return True
        return False


def addresses(tombstone: Tombstone) -> list[str]:
    """Return the URLs by which rows and WARC records are forgotten; a record's catalogue stays."""
    return [tombstone.url] if tombstone.is_record else spellings(tombstone.url)


def finish_forgetting(database: Database, data: Path, settings: Settings) -> list[str]:
    """Finish all that is under way; return what is left for later, and why."""
    with closing(Forgetter(database, data, settings)) as forgetter:
        return forgetter.run().remains
