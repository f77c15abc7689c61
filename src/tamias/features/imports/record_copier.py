"""Copies records of other crawlers into WARC files of the archive, as they are, each once."""

from collections.abc import Mapping, Sequence

import msgspec

from tamias.archive.stored_files import files_of
from tamias.archive.tombstones import tombstones_of
from tamias.crawl.commit.database_store import DatabaseStore
from tamias.crawl.plan.admit import Admission
from tamias.database.columns import Digests
from tamias.database.connect import Cursor
from tamias.features.imports.captures import REMEMBERED, SCHEMES, ImportedRecord
from tamias.features.imports.merge import SQL
from tamias.features.warc.hook import WarcHook
from tamias.features.warc.index import WarcExtent, records_of, resolve_revisits
from tamias.features.warc.warc_files import URN, cut_imported
from tamias.model.errors import UrlError
from tamias.model.resource import resource_id
from tamias.model.url import fetch_url


class RecordCopies(msgspec.Struct, frozen=True):
    """Records that were copied: what they are known by, and where responses stand."""

    keys: list[bytes]
    extents: list[WarcExtent]
    resolved: list[WarcExtent]
    """Known revisits whose originals were found since."""


class RecordCopier:
    """Copies the records of one import; for the thread of the database."""

    def __init__(self, store: DatabaseStore, admission: Admission) -> None:
        self.known = 0
        """Records that were there already."""
        self._data = store.data
        self._session = store.thread.session
        self._admission = admission
        self._warcs = WarcHook(store.context, "-import")
        self._dropped: set[str] = set()
        """Names of records that are left out, so that those that belong to them are left out as well."""
        self._revisits: list[ImportedRecord] = []
        """Known ones, of which the original may have been found since."""

    def close(self) -> None:
        """Complete the last file."""
        self._warcs.close()

    def cut_files(self) -> None:
        """Cut off what an import wrote and did not commit, because it was killed."""
        committed = {each.name: each.committed for each in files_of(self._session, "warc")}
        cut_imported(self._data / "warc", committed)

    def choose(self, records: Sequence[ImportedRecord], taken: Mapping[int, str]) -> list[ImportedRecord]:
        """Return the records that are new and belong to nothing that is left out.

        `taken` has the ids of captures that are not, by the identity of the imported ones.
        """
        found: dict[bytes, ImportedRecord] = {}
        for each in records:
            if each.capture is not None:
                is_left_out = id(each.capture) not in taken
            else:
                is_left_out = not self._dropped.isdisjoint(each.names) or self._is_left_out(each)
            if is_left_out:
                if len(self._dropped) > REMEMBERED:
                    self._dropped.clear()
                self._dropped |= each.names
            elif each.member is not None:
                found[each.key] = each
            if each.extent is not None and each.capture is not None and not is_left_out:
                each.extent = msgspec.structs.replace(each.extent, capture=taken[id(each.capture)])
        known = [found.pop(key) for (key,) in self._session.fetch_all(SQL["known_records"], _keys(found))]
        self.known += len(known)
        self._revisits = [each for each in known if each.kind == "revisit"]
        return list(found.values())

    def copy(self, records: Sequence[ImportedRecord]) -> RecordCopies:
        """Write records to the WARC files of imports, and sync these."""
        extents: list[WarcExtent] = []
        for each in records:
            assert each.member is not None
            extent = self._warcs.copy_record(each.member, each.extent)
            if extent is not None:
                extents.append(self._with_body(extent, each.refers_to))
        self._warcs.prepare(())
        resolved = [self._with_body(each.extent, each.refers_to) for each in self._revisits if each.extent]
        return RecordCopies([each.key for each in records], extents, resolved)

    def write(self, cursor: Cursor, copies: RecordCopies) -> None:
        """Commit what was copied."""
        self._warcs.write_records(cursor, copies.extents)
        resolve_revisits(cursor, copies.resolved)
        if copies.keys:
            cursor.execute(SQL["insert_records"].text, _keys(copies.keys))

    def _is_left_out(self, record: ImportedRecord) -> bool:
        """Return whether a record that is no capture is about a URL, or of a time, that is not taken."""
        about = URN.sub("", record.target)
        if not about.lower().startswith(SCHEMES):
            return False
        try:
            url = fetch_url(about)
        except UrlError:
            return False
        tombstones = tombstones_of(self._session, [resource_id(self._admission.key(url))])
        return self._admission.refusal(url, 0) is not None or any(
            each.covers(0, record.at) or each.captured_at == record.at for each in tombstones
        )

    def _with_body(self, extent: WarcExtent, refers_to: tuple[str, int] | None) -> WarcExtent:
        """Add the digest of the body of a revisit whose original was imported before."""
        if extent.sha256 is not None or refers_to is None:
            return extent
        known = records_of(self._session, [refers_to[0]])
        sha256 = next((each.sha256 for each in known if each.captured_at == refers_to[1]), None)
        return msgspec.structs.replace(extent, sha256=sha256)


def _keys(keys: Sequence[bytes] | Mapping[bytes, object]) -> dict[str, object]:
    return {"digest": Digests(keys)}
