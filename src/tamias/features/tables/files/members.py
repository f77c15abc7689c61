"""Members of archives: names and sizes from their directories, and the tables among those of a zip archive.

A zip archive is opened only if its directory is of bearable size: Python's own reader takes any into memory.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from tamias.content.containers.archives import bounded_sevenzip, bounded_zip, zip_members
from tamias.content.containers.limits import MAX_ENTRIES, Meter, OpenLimits
from tamias.content.containers.tar import tar_entries
from tamias.content.formats import SEVEN_ZIP, TAR, ZIP
from tamias.features.archive.canonical.text import MOST_MEMORY
from tamias.features.tables.limits import ProfileLimit, ProfileRun
from tamias.model.document import LimitExceeded
from tamias.model.profile import MemberProfile, Members

ARCHIVES = frozenset({ZIP, TAR, SEVEN_ZIP})
_LONGEST_NAME = 500


def archive_members(path: Path, media_type: str, run: ProfileRun) -> Members | None:
    """The members of an archive, or what can be read of them; None where nothing can."""
    listed: list[MemberProfile] = []
    count = size = encrypted = 0
    complete = True
    try:
        with path.open("rb") as file:
            for member in _READERS[media_type](file):
                run.check()
                count += 1
                size += member.size
                encrypted += member.encrypted
                if len(listed) < run.limits.members:
                    listed.append(member)
                if count == MAX_ENTRIES:
                    raise ProfileLimit(f"members beyond the first {MAX_ENTRIES} not counted")
    except (ProfileLimit, LimitExceeded) as limit:
        complete = False
        run.problems.append(f"{limit}{', not read' if isinstance(limit, LimitExceeded) else ''}")
    except ImportError:
        raise
    except Exception as error:  # noqa: BLE001 - the readers of archives raise whatever the bytes make them
        complete = False
        run.problems.append(f"the archive cannot be read: {type(error).__name__}: {str(error)[:200]}")
    if encrypted:
        run.problems.append(f"{encrypted} of {count} members are encrypted")
    if not count and not complete:
        return None
    return Members(count=count, size=size, encrypted=encrypted, members=tuple(listed), complete=complete)


def _of_zip(file: BinaryIO) -> Iterator[MemberProfile]:
    with bounded_zip(file) as archive:
        for each in archive.infolist():
            if not each.is_dir():
                yield MemberProfile(each.filename[:_LONGEST_NAME], each.file_size, bool(each.flag_bits & 1))


def _of_tar(file: BinaryIO) -> Iterator[MemberProfile]:
    for each in tar_entries(file):
        if each.is_file:
            yield MemberProfile(each.name[:_LONGEST_NAME], each.content.left)


def _of_7z(file: BinaryIO) -> Iterator[MemberProfile]:
    with bounded_sevenzip(file) as archive:
        locked = archive.needs_password()
        for each in archive.list():
            if not each.is_directory:
                yield MemberProfile(each.filename[:_LONGEST_NAME], each.uncompressed or 0, locked)


_READERS = {ZIP: _of_zip, TAR: _of_tar, SEVEN_ZIP: _of_7z}


def table_members(path: Path, target: Path, most_bytes: int) -> Iterator[str]:
    """Write each table of a zip archive to `target`, one after another, and yield its name.

    Raises `DamageError` and `LimitExceeded`.
    """
    with path.open("rb") as file:
        meter = Meter(OpenLimits(max_bytes=most_bytes), file.tell)
        for member in zip_members(file, meter, MOST_MEMORY):
            if member.name.lower().endswith((".csv", ".tsv")) and not member.skipped:
                with target.open("wb") as copy:
                    for chunk in member.chunks:
                        meter.unpacked(len(chunk))
                        copy.write(chunk)
                yield member.name
