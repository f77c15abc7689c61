"""Blobs and packs as rows. The rows of new blobs are written in the transaction of what refers to them."""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from tamias.archive.blobs.blob import Blob, BlobLost, Codec, Prepared
from tamias.database.columns import Digests, RowSchema, Uuids
from tamias.database.connect import Cursor, Session

_ROWS = RowSchema(Blob, "blob")
SQL = _ROWS.statements("tamias.archive.blobs", "blobs.sql")


def insert_blobs(cursor: Cursor, prepared: Sequence[Prepared]) -> None:
    """Makes synced bodies true, inside the caller's transaction and once in it. May be done twice.

    Raises `BlobLost` when something was collected meanwhile: then `BlobWriter.abandon`, and prepare again.
    """
    blobs = list({blob.sha256: blob for each in prepared for blob in each.blobs}.values())
    if blobs:
        hold_packs(cursor, {blob.place.pack for blob in blobs})
        cursor.execute(SQL["insert_blobs"].text, columns(blobs))
    needed = {sha256 for each in prepared for sha256 in each.relies_on} - {blob.sha256 for blob in blobs}
    if needed and len(cursor.execute(SQL["rely"].text, digests(needed)).fetchall()) < len(needed):
        raise BlobLost("a blob that others rely on was collected meanwhile; prepare them again")


def hold_packs(cursor: Cursor, packs: set[UUID]) -> None:
    """Makes sure that these packs stay until the end of the transaction, or raises `BlobLost`."""
    held = cursor.execute(SQL["hold_packs"].text, {"pack": Uuids(packs)}).fetchall()
    if len(held) < len(packs):
        raise BlobLost("a pack was closed before the rows of its blobs were written; prepare them again")


class BlobTable:
    """Looks blobs up, also those whose rows are still to be written."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.pending: dict[str, Blob] = {}
        """Prepared by this process; their rows may or may not be there."""

    def chains(self, sha256s: Sequence[str]) -> dict[str, list[Blob]]:
        """Return for each known blob itself, its base, and so on; a broken chain ends with a base."""
        fresh = {sha256: self._pending_chain(sha256) for sha256 in sha256s}
        ends = {sha256: needed_by(chain[-1]) if chain else sha256 for sha256, chain in fresh.items()}
        stored = self._stored_chains([end for end in ends.values() if end is not None])
        joined = {sha256: fresh[sha256] + stored.get(end or "", []) for sha256, end in ends.items()}
        return {sha256: chain for sha256, chain in joined.items() if chain}

    def known(self, sha256s: Iterable[str]) -> set[str]:
        """Return which of these are there."""
        wanted = set(sha256s)
        found = wanted & self.pending.keys()
        rest = wanted - found
        if rest:
            rows = self.execute("known", digests(rest))
            found |= {sha256.hex() for (sha256,) in rows}
        return found

    def execute(self, name: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        """The rows of one statement, in a transaction of its own."""
        return self.session.fetch_all(SQL[name], parameters)

    def change(self, name: str, parameters: dict[str, Any]) -> None:
        """Execute a statement in a transaction of its own; doing it twice must do no harm."""
        self.session.execute(SQL[name], parameters)

    def _pending_chain(self, sha256: str) -> list[Blob]:
        chain: list[Blob] = []
        wanted: str | None = sha256
        while wanted is not None and wanted in self.pending:
            chain.append(self.pending[wanted])
            wanted = needed_by(chain[-1])
        return chain

    def _stored_chains(self, sha256s: list[str]) -> dict[str, list[Blob]]:
        chains: dict[str, list[Blob]] = {}
        if sha256s:
            for sha256, *row in self.execute("chains", digests(sha256s)):
                chains.setdefault(sha256.hex(), []).append(blob_of(row))
        return chains


def needed_by(blob: Blob) -> str | None:
    """Return what must be decoded first. The list of its chunks is not a part of a body."""
    return None if blob.codec is Codec.CHUNKS else blob.base


def blob_of(row: Sequence[Any]) -> Blob:
    """A row as a value."""
    return _ROWS.decode(row)


def columns(blobs: Sequence[Blob]) -> dict[str, list[Any]]:
    """Values as the columns of an insert."""
    return _ROWS.parameters(blobs)


def digests(sha256s: Iterable[str]) -> dict[str, list[Any]]:
    """Digests as the parameter of a statement."""
    return {"sha256": Digests(sha256s)}


def read_blobs(session: Session, sha256s: Sequence[str]) -> dict[str, Blob]:
    """The rows of these, without what they are decoded with."""
    found = (blob_of(row) for row in session.fetch_all(SQL["blobs"], digests(sha256s)))
    return {blob.sha256: blob for blob in found}
