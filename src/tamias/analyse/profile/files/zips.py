"""Opens zip archives whose directory is of bearable size; Python's own reader takes any into memory."""

import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tamias.analyse.profile.limits import ProfileLimit
from tamias.content.containers.directory import bounded_zip
from tamias.model.document import LimitExceeded

FAULTS = (
    zipfile.BadZipFile,
    EOFError,
    KeyError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
    struct.error,
    zlib.error,
)
"""What a damaged archive makes Python's reader raise."""

_MEDIA_TYPE = re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,100}")


@contextmanager
def opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """An archive; raises `ProfileLimit`, or one of `FAULTS`."""
    with path.open("rb") as file:
        try:
            archive = bounded_zip(file)
        except LimitExceeded as limit:
            raise ProfileLimit(f"{limit}, not read") from None
        with archive:
            yield archive


def spoken_type(archive: zipfile.ZipFile) -> str | None:
    """The media type that an archive gives itself in a member called `mimetype`, as OpenDocument has it."""
    if "mimetype" not in archive.namelist() or archive.getinfo("mimetype").file_size > 200:
        return None
    found = _MEDIA_TYPE.fullmatch(archive.read("mimetype").decode("ascii", "replace").strip())
    return found[0] if found else None
