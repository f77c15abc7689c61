"""Gives bodies back, each checked against its digest."""

import hashlib
from collections import OrderedDict
from collections.abc import Iterator

from tamias.archive.blobs.blob import Blob, BlobDamaged, BlobMissing, Codec
from tamias.archive.blobs.chunking import listed
from tamias.archive.blobs.frames import PayloadError, Text
from tamias.archive.blobs.groups import part
from tamias.archive.blobs.packs import PackMissing, Packs
from tamias.archive.blobs.table import BlobTable, needed_by
from tamias.archive.blobs.trial import decode
from tamias.database.connect import Session


class BodyCache:
    """Forgets what was not used for longest."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._bodies: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0

    def get(self, sha256: str) -> bytes | None:
        """A body, if it is at hand."""
        body = self._bodies.get(sha256)
        if body is not None:
            self._bodies.move_to_end(sha256)
        return body

    def put(self, sha256: str, body: bytes) -> None:
        """Keeps a body; one that is too large for all the room is left out."""
        if sha256 in self._bodies or len(body) > self._most:
            return
        self._bodies[sha256] = body
        self._bytes += len(body)
        while self._bytes > self._most:
            self._bytes -= len(self._bodies.popitem(last=False)[1])

    def forget(self, sha256: str) -> None:
        """Drops a body."""
        body = self._bodies.pop(sha256, None)
        self._bytes -= len(body) if body is not None else 0


CACHE_BYTES = 128 * 1024 * 1024
_CHUNKS_AT_ONCE = 256


class BlobReader:
    """Reads from any process, also while others write. Not for two threads at once."""

    def __init__(self, packs: Packs, session: Session, cache_bytes: int = CACHE_BYTES) -> None:
        self.packs = packs
        self.table = BlobTable(session)
        self.cache = BodyCache(cache_bytes)

    def size(self, sha256: str) -> int:
        """Bytes of a body; `BlobMissing` if there is none of that digest."""
        return self._chain(sha256)[0].size

    def read(self, sha256: str) -> bytes:
        """A whole body in memory. Raises `BlobMissing`, `BlobDamaged`."""
        return b"".join(self.pieces(sha256))

    def pieces(self, sha256: str) -> Iterator[bytes]:
        """The same in pieces; a body in chunks is not held as a whole.

        If a body in chunks is damaged, that may show only when some of it has been given.
        """
        yield from self.pieces_of(self._chain(sha256))

    def pieces_of(self, chain: list[Blob]) -> Iterator[bytes]:
        """The same of a body whose chain is known."""
        if chain[0].codec is Codec.CHUNKS:
            yield from self._chunks(chain[0])
            return
        yield self.decoded_or_damaged(chain)

    def payload(self, blob: Blob) -> bytes:
        """The stored form."""
        return self.packs.read(blob.place.pack, blob.place.end - blob.stored, blob.stored)

    def decoded_or_damaged(self, chain: list[Blob]) -> bytes:
        """The same as `decoded`; a pack that cannot be read is a damage."""
        while True:
            try:
                return self.decoded(chain)
            except PackMissing as error:
                # Perhaps it was rewritten or repacked while we read; then its row says where it is now.
                now = self._chain(chain[0].sha256)
                if now == chain:
                    raise BlobDamaged(chain[0].sha256, str(error)) from error
                chain = now

    def decoded(self, chain: list[Blob]) -> bytes:
        """The body of the first of a chain. Raises `BlobDamaged` that names the broken one, `PackError`."""
        at_hand = ((at, self.cache.get(blob.sha256)) for at, blob in enumerate(chain))
        first, found = next(((at, body) for at, body in at_hand if body is not None), (len(chain), None))
        if found is None and needed_by(chain[-1]) is not None:
            raise BlobDamaged(chain[-1].sha256, f"its base {chain[-1].base} is missing")
        text = Text(found) if found is not None else None
        for blob in reversed(chain[:first]):
            text = self._decoded_one(blob, text)
            if blob.codec is Codec.GROUP:
                self.cache.put(blob.sha256, text.content)  # whoever reads one part often reads the next
        assert text is not None
        if first and _digest(text) != chain[0].sha256:
            raise self._blamed(chain)
        self.cache.put(chain[0].sha256, text.content)
        return text.content

    def _chain(self, sha256: str) -> list[Blob]:
        chain = self.table.chains([sha256]).get(sha256)
        if chain is None:
            raise BlobMissing(f"there is no blob {sha256}")
        return chain

    def _decoded_one(self, blob: Blob, base: Text | None) -> Text:
        try:
            if blob.codec is Codec.PART and base is not None:
                return Text(part(base.content, blob.sha256))
            return decode(blob.codec, self.payload(blob), blob.size, base)
        except PayloadError as error:
            raise BlobDamaged(blob.sha256, str(error)) from error

    def _blamed(self, chain: list[Blob]) -> BlobDamaged:
        """Return which one of a chain it is that gives other bytes than it should."""
        text = None
        for blob in reversed(chain):
            text = self._decoded_one(blob, text)
            if _digest(text) != blob.sha256:
                return BlobDamaged(blob.sha256, "its bytes have another digest")
        return BlobDamaged(chain[0].sha256, "its digest was wrong and now it is right: test this machine")

    def _chunks(self, blob: Blob) -> Iterator[bytes]:
        """The body of a blob in chunks. Each chunk is checked when it is given, the whole at the end."""
        assert blob.base is not None
        digest = hashlib.sha256()
        names = listed(self.read(blob.base))
        for start in range(0, len(names), _CHUNKS_AT_ONCE):
            some = names[start : start + _CHUNKS_AT_ONCE]
            chains = self.table.chains(some)
            for sha256 in some:
                if sha256 not in chains:
                    raise BlobDamaged(blob.sha256, f"its chunk {sha256} is missing")
                content = self.decoded_or_damaged(chains[sha256])
                self.cache.forget(sha256)  # all of them would drive out what is asked for again
                digest.update(content)
                yield content
        if digest.hexdigest() != blob.sha256:
            raise BlobDamaged(blob.sha256, "its chunks do not make it up")


def _digest(text: Text) -> str:
    return hashlib.sha256(text.content).hexdigest()
