"""Takes bodies in two phases: bytes first and durable, then rows in the transaction of what refers to them.

`prepare` each body, `sync`, `insert_blobs` in the transaction, then `settled`.
"""

import hashlib
import time
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from uuid import UUID

import msgspec

from tamias.archive.blobs.blob import (
    Blob,
    BlobDamaged,
    BlobPlace,
    Codec,
    Description,
    Prepared,
    description_frame,
    part_row,
)
from tamias.archive.blobs.chunking import Chunk, chunks_of, content_of, list_of
from tamias.archive.blobs.groups import encode_group
from tamias.archive.blobs.packs import PackError, Packs, PackWriter
from tamias.archive.blobs.reader import CACHE_BYTES, BlobReader
from tamias.archive.blobs.table import BlobTable, needed_by
from tamias.archive.blobs.trial import Base, Payload, encode, encode_best
from tamias.database.connect import Session
from tamias.model.capture import Body, new_capture_id
from tamias.model.errors import DatabaseError, TamiasError
from tamias.model.faults import reached


class Appender:
    """Adds records to its own pack, and begins the next when that is full."""

    def __init__(self, packs: Packs, table: BlobTable, pack_bytes: int) -> None:
        self._packs = packs
        self._table = table
        self._pack_bytes = pack_bytes
        self._writer: PackWriter | None = None
        self._full: list[PackWriter] = []
        self._broken: TamiasError | None = None

    def append(self, record: list[bytes]) -> BlobPlace:
        """Adds a record, given in parts. Not durable yet; after `DiskFull` all is as before."""
        writer = self._with_room()
        start = writer.append(record)
        return BlobPlace(writer.pack, start, sum(map(len, record)))

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Restore the packs as they were if the block raises."""
        lengths = {writer.pack: writer.length for writer in self._writers()}
        try:
            yield
        except BaseException:
            for writer in self._writers():
                writer.take_back(lengths.get(writer.pack, 0))
            raise

    def sync(self) -> None:
        """Makes all durable. After a failure only `close` helps: nobody knows what was kept.

        Until then the failure is raised again: whoever comes next must know if trying again can help.
        """
        if self._broken is not None:
            raise self._broken
        if self._writer is not None and self._writer.is_open:
            try:
                self._writer.sync()
            except TamiasError as error:
                self._broken = error
                raise
            except BaseException:
                self._broken = PackError(
                    "a pack could not be made durable; what was appended must come again"
                )
                raise

    def settled(self, needed: Container[UUID] = ()) -> None:
        """Let go of full packs; rows will come only for those that are needed."""
        done = [writer for writer in self._full if writer.pack not in needed]
        self._full = [writer for writer in self._full if writer.pack in needed]
        self._let_go(done)

    def close(self) -> None:
        """Lets go of all packs."""
        done = self._writers()
        self._full, self._writer, self._broken = [], None, None
        self._let_go(done)

    def _writers(self) -> list[PackWriter]:
        return [*self._full, *([self._writer] if self._writer else [])]

    def _with_room(self) -> PackWriter:
        writer = self._writer
        if writer is not None and writer.is_open and writer.length < self._pack_bytes:
            return writer
        if writer is not None:
            self.sync()
            self._full.append(writer)
        self._writer = None
        # The bytes first, held by a lock: so a row that is open and not held is that of a dead process.
        self._writer = self._packs.create(new_capture_id(int(time.time() * 1000)))
        reached("pack-made")
        self._table.change("new_pack", {"pack": self._writer.pack, "state": "open"})
        return self._writer

    def _let_go(self, done: Sequence[PackWriter]) -> None:
        for writer in done:
            writer.close()
            reached("pack-closed")
        if done:
            with suppress(DatabaseError):  # recovery will find them unsealed and not held
                self._table.change("seal_packs", {"pack": [writer.pack for writer in done]})


PACK_BYTES = 256 * 1024 * 1024
WHOLE_BYTES = 128 * 1024 * 1024
"""Bodies up to this size are held in memory as a whole; larger ones are cut into chunks."""
MOST_DEPTH = 16
"""Bases to be decoded before a body, at most; then a key frame is due."""


class BlobWriter:
    """Writes packs of its own; many may work at once. Not for two threads at once."""

    def __init__(
        self,
        packs: Packs,
        session: Session,
        *,
        cache_bytes: int = CACHE_BYTES,
        pack_bytes: int = PACK_BYTES,
        whole_bytes: int = WHOLE_BYTES,
    ) -> None:
        self.reader = BlobReader(packs, session, cache_bytes)
        self.table = self.reader.table
        self.appender = Appender(packs, self.table, pack_bytes)
        self._whole_bytes = whole_bytes
        self._unsettled: dict[str, Prepared] = {}
        self._uses: Counter[str] = Counter()
        """How often each of these was given out, and is to be settled."""

    def chains(self, bodies: Iterable[tuple[Body, str | None]]) -> dict[str, list[Blob]]:
        """Look up the chains of bodies and of those that they may be like, at once, for `prepare`."""
        wanted = {sha256: None for body, previous in bodies for sha256 in (body.sha256, previous) if sha256}
        return self.table.chains(list(wanted)) if wanted else {}

    def prepare(
        self, body: Body, previous: str | None = None, chains: Mapping[str, list[Blob]] | None = None
    ) -> Prepared:
        """Writes a body that is new; `previous` is the digest of one that it may be like.

        `chains` is what `chains` said of both, where it was asked before. Nothing is durable yet. Raises
        `DiskFull`, and `TamiasError` when a file is not what its digest says; what was prepared before still
        holds.
        """
        # Written, but its row is not committed yet, so the table does not know it.
        if body.sha256 in self._unsettled:
            self._uses[body.sha256] += 1
            return msgspec.structs.replace(self._unsettled[body.sha256], written=0)
        chains = self.chains([(body, previous)]) if chains is None else chains
        if body.sha256 in chains:
            return Prepared(sha256=body.sha256, size=body.size, relies_on=(body.sha256,))
        before = chains.get(previous or "", [])
        if body.size > self._whole_bytes:
            with self._all_or_nothing():
                return self._prepare_chunks(body, before)
        return self._prepare_whole(body.sha256, content_of(body), before)

    def sync(self) -> None:
        """Makes durable what was prepared. If it fails, all that is not settled is abandoned."""
        try:
            self.appender.sync()
        except TamiasError:
            self.abandon()
            raise

    def settled(self) -> None:
        """The transactions of all that was prepared have ended, whichever way."""
        self._forget()
        self.appender.settled()

    def settle(self, prepared: Iterable[Prepared]) -> None:
        """The transactions of these have ended, whichever way, and those of others may be under way."""
        for each in prepared:
            self._end_use(each)
        needed = [blob for each in self._unsettled.values() for blob in each.blobs]
        self.table.pending = {blob.sha256: blob for blob in needed}
        self.appender.settled({blob.place.pack for blob in needed})

    def abandon(self) -> None:
        """Gives up what was prepared and is not settled; its bytes are collected some day."""
        for sha256 in self._unsettled:
            self.reader.cache.forget(sha256)
        self.close()

    def close(self) -> None:
        """Lets go of the packs. May be called twice, and the writer may be used again."""
        self._forget()
        self.appender.close()

    def write_key_frame(self, sha256: str, content: bytes) -> Blob:
        """A body by itself, whatever is known of it; for repairs. Not durable yet."""
        return self._append(sha256, len(content), encode(content))

    def describe_again(self, blob: Blob) -> Blob:
        """The same payload behind a new description; for repairs. Not durable yet."""
        description = Description(blob.sha256, blob.size, blob.codec, blob.stored, blob.base, blob.depth)
        return self._append_described(description, self.reader.payload(blob))

    def write_best(self, sha256: str, content: bytes, base: tuple[Blob, bytes] | None = None) -> Blob:
        """A body in the smallest form, alone or with a base; for what is coded anew. Not durable yet."""
        payload = encode_best(content, base[1] if base else None)
        return self._append(sha256, len(content), payload, base[0] if base else None)

    def write_group(
        self, bodies: Sequence[tuple[str, bytes]], base: tuple[Blob, bytes] | None = None
    ) -> tuple[Blob, list[Blob]]:
        """Bodies with their digests in one record: the group and its parts. Not durable yet."""
        group = encode_group(bodies, base[1] if base else None)
        payload = Payload(Codec.GROUP, group.payload)
        blob = self._append(group.sha256, group.size, payload, base[0] if base else None)
        return blob, [part_row(blob, sha256, len(content)) for sha256, content in bodies]

    def _prepare_whole(self, sha256: str, content: bytes, before: list[Blob]) -> Prepared:
        payload = encode(content, self._base(before))
        base = before[0] if payload.codec in (Codec.ZDELTA, Codec.ROWS) else None
        blob = self._append(sha256, len(content), payload, base)
        self.reader.cache.put(sha256, content)
        return self._prepared([blob], sha256, len(content), needs=[base.sha256] if base else [])

    def _base(self, chain: list[Blob]) -> Base | None:
        """The body that a new one may lean on; none when a key frame is due, or it cannot be read."""
        if not chain or chain[0].codec is Codec.CHUNKS or needed_by(chain[-1]) is not None:
            return None
        before, key = chain[0], chain[-1]
        # The bytes of a group are those of all its parts, not of the one that is needed.
        spent = sum(blob.stored for blob in chain[:-1] if blob.codec is not Codec.GROUP)
        if before.depth >= MOST_DEPTH:
            return None
        try:
            return Base(self.reader.decoded(chain), before.codec, key.stored, spent)
        except (BlobDamaged, PackError):
            return None  # a damage is the business of check; the new body must not suffer from it

    def _append(self, sha256: str, size: int, payload: Payload, base: Blob | None = None) -> Blob:
        description = Description(sha256, size, payload.codec, len(payload.content))
        if base is not None:
            description = msgspec.structs.replace(description, base=base.sha256, depth=base.depth + 1)
        return self._append_described(description, payload.content)

    def _append_described(self, description: Description, payload: bytes) -> Blob:
        return description.blob(self.appender.append([description_frame(description), payload]))

    def _prepared(self, new: list[Blob], sha256: str, size: int, needs: Iterable[str]) -> Prepared:
        """Return a prepared body with all that it needs and that has no row yet."""
        blobs = {blob.sha256: blob for blob in new}
        relies_on = set()
        unseen = list(needs)
        while unseen:
            needed = unseen.pop()
            blob = self.table.pending.get(needed)
            if blob is None:
                relies_on.add(needed)
            else:
                blobs[needed] = blob
                unseen += [blob.base] if blob.base else []
        prepared = Prepared(
            sha256=sha256,
            size=size,
            blobs=tuple(blobs.values()),
            relies_on=tuple(relies_on),
            written=sum(blob.place.length for blob in new),
        )
        self._unsettled[sha256] = prepared
        self._uses[sha256] = 1
        self.table.pending |= {blob.sha256: blob for blob in new}
        return prepared

    def _end_use(self, prepared: Prepared) -> None:
        known = self._unsettled.get(prepared.sha256)
        # The same body may have been abandoned, and prepared once more.
        if known is None or known.blobs is not prepared.blobs:
            return
        self._uses[known.sha256] -= 1
        if not self._uses[known.sha256]:
            del self._uses[known.sha256], self._unsettled[known.sha256]

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Undo everything that was prepared in the block if it raises."""
        prepared, pending, uses = dict(self._unsettled), dict(self.table.pending), Counter(self._uses)
        try:
            with self.appender.all_or_nothing():
                yield
        except BaseException:
            self._unsettled, self.table.pending, self._uses = prepared, pending, uses
            raise

    def _forget(self) -> None:
        self._unsettled.clear()
        self._uses.clear()
        self.table.pending.clear()

    def _prepare_chunks(self, body: Body, before: list[Blob]) -> Prepared:
        new: dict[str, Blob] = {}
        parts: list[tuple[str, int]] = []
        for some in chunks_of(body):
            new |= self._append_chunks(some, new)
            parts += [(chunk.sha256, len(chunk.content)) for chunk in some]
        listed = self._prepare_list(list_of(parts), before)
        whole = Description(body.sha256, body.size, Codec.CHUNKS, 0, listed.sha256)
        blobs = [*new.values(), self._append_described(whole, b"")]
        needs = {sha256 for sha256, _ in parts} - new.keys() | {listed.sha256}
        prepared = self._prepared(blobs, body.sha256, body.size, needs)
        self._end_use(listed)  # it is one of what was just prepared
        return msgspec.structs.replace(prepared, written=prepared.written + listed.written)

    def _append_chunks(self, chunks: list[Chunk], new: dict[str, Blob]) -> dict[str, Blob]:
        content = {chunk.sha256: chunk.content for chunk in chunks if chunk.sha256 not in new}
        known = self.table.known(content)
        return {
            sha256: self._append(sha256, len(content[sha256]), encode(content[sha256]))
            for sha256 in content
            if sha256 not in known
        }

    def _prepare_list(self, listing: bytes, before: list[Blob]) -> Prepared:
        """The list of chunks is a body as any other, and like the list of the version before."""
        like = before[0].base if before and before[0].codec is Codec.CHUNKS else None
        sha256 = hashlib.sha256(listing).hexdigest()
        return self.prepare(Body(size=len(listing), sha256=sha256, data=listing), like)
