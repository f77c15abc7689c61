"""A body on its way out of the packs, whatever its codec; only that of rows needs numpy, and loads it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tamias.archive.blobs.line_matching import Numbers

_BREAK = b"\n"


class Text:
    """A body as bytes, or as lines of a pool in some order: whichever it came as.

    A chain of `rows` shares one pool, so that only the last body is put together.
    """

    def __init__(
        self, content: bytes | None = None, pool: list[bytes] | None = None, order: "Numbers | None" = None
    ) -> None:
        self._content = content
        self._pool = pool
        self._order = order

    @property
    def content(self) -> bytes:
        """As bytes."""
        if self._content is None:
            pool, order = self.in_lines()
            self._content = _BREAK.join(map(pool.__getitem__, order.tolist()))
        return self._content

    def in_lines(self) -> "tuple[list[bytes], Numbers]":
        """A pool of lines, to which others may be added, and the places of this body's lines in it."""
        if self._pool is None or self._order is None:
            import numpy as np

            self._pool = self.content.split(_BREAK)
            self._order = np.arange(len(self._pool), dtype=np.uint32)
        return self._pool, self._order
