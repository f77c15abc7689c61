"""The difference of two archives: which of their files came, went or are others."""

from pathlib import Path

from tamias.archive.diffs.values import Change, Diff, DiffKind, DiffLimits, What, told_text
from tamias.content.containers.directory import ZipEntry, members


def members_diff(old: Path, new: Path, limits: DiffLimits) -> Diff:
    """Compares two zip archives by their directories. Raises `Unreadable`."""
    was, now = ({each.name: each for each in members(path)} for path in (old, new))
    changed = [name for name in was.keys() & now.keys() if was[name] != now[name]]
    names = sorted([*(was.keys() ^ now.keys()), *changed])
    notes = []
    if any(each.encrypted for each in (*was.values(), *now.values())):
        notes.append("some members are encrypted: their checksums may not tell that they changed")
    return Diff(
        kind=DiffKind.MEMBERS,
        added=len(now.keys() - was.keys()),
        removed=len(was.keys() - now.keys()),
        changed=len(changed),
        changes=[_change(name, was.get(name), now.get(name), limits) for name in names[: limits.changes]],
        truncated=len(names) > limits.changes,
        notes=notes,
    )


def _change(name: str, was: ZipEntry | None, now: ZipEntry | None, limits: DiffLimits) -> Change:
    what = What.ADDED if was is None else What.REMOVED if now is None else What.CHANGED
    return Change(what, told_text(name, limits), _told(was), _told(now))


def _told(member: ZipEntry | None) -> dict[str, int | str] | None:
    return None if member is None else {"size": member.size, "crc32": f"{member.crc:08x}"}
