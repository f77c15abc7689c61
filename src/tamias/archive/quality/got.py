"""What the archive really got of a form of a dataset, and whether that is what was told."""

from typing import Final

import msgspec

from tamias.archive.quality.formats import same_format

SIZE_TOLERANCE: Final = 0.01
"""Told sizes are often rounded: so much may be missing."""


class Got(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a resource after the latest attempt on it."""

    tried: bool = False
    retrieved: bool = False
    """Whether the latest attempt brought it, or that it is unchanged; not one that is not believed."""
    media_type: str | None = None
    """Of the current version, as found."""
    byte_size: int | None = None
    """Of the current version."""


NOTHING: Final = Got()


def format_is_true(promised: str | None, got: Got) -> bool | None:
    """Whether the found type is the promised one; None where nothing was promised or nothing came."""
    if promised is None or got.media_type is None:
        return None
    return same_format(promised, got.media_type)


def size_is_true(promised: int | None, got: Got) -> bool | None:
    """Whether the size is what was told, to a hundredth; None where nothing was told or nothing came."""
    if promised is None or got.byte_size is None:
        return None
    return abs(promised - got.byte_size) <= SIZE_TOLERANCE * max(promised, got.byte_size)
