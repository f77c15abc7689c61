"""Which column of a table is which in its next version, and which may serve as the key."""

import re
from collections.abc import Sequence

import msgspec

from tamias.archive.diffs.values import Columns
from tamias.content.canonical.tables import FileTable, Row

_KEY_NAME = re.compile(
    r"(?i)(?:.*[_ .-])?(?:id|identifier|uuid|guid|key|code|no|nr|num|number|uri|url|iri)|fid|gid|oid|\w+id"
)
CANDIDATES = 4


class Pairing(msgspec.Struct, frozen=True):
    """The columns that both versions have, by their places in each, and what happened to the others."""

    names: list[str]
    old: list[int]
    new: list[int]
    columns: Columns | None = None
    keys: list[int] = []
    """Places in `names` that may serve as a key, the likeliest first."""


def paired(old: FileTable, new: FileTable) -> Pairing:
    """Columns are the same when their names are, or when only the name changed."""
    old_rows, new_rows = old.sample(), new.sample()
    was, now = old.columns, new.columns
    renamed = _renamed(was, now, old_rows, new_rows)
    of_old = {renamed.get(name, name): place for place, name in enumerate(was)}
    of_new = {name: place for place, name in enumerate(now)}
    names = [name for name in now if name in of_old]
    pairing = Pairing(names, [of_old[name] for name in names], [of_new[name] for name in names])
    columns = Columns(
        added=[name for name in now if name not in of_old],
        removed=[name for name in of_old if name not in of_new],
        renamed=list(renamed.items()),
        moved=pairing.old != sorted(pairing.old),
    )
    keys = [
        place
        for place in range(len(names))
        if _tells_apart(old_rows, pairing.old[place]) and _tells_apart(new_rows, pairing.new[place])
    ]
    keys.sort(key=lambda place: _KEY_NAME.fullmatch(names[place]) is None)
    told = columns if columns != Columns() else None
    return msgspec.structs.replace(pairing, columns=told, keys=keys[:CANDIDATES])


def _renamed(
    was: Sequence[str], now: Sequence[str], old_rows: Sequence[Row], new_rows: Sequence[Row]
) -> dict[str, str]:
    if len(was) != len(now):
        return {}
    gone, come = set(was) - set(now), set(now) - set(was)
    return {
        old: new
        for place, (old, new) in enumerate(zip(was, now, strict=True))
        if old in gone and new in come and _alike(old_rows, new_rows, place)
    }


def _alike(old_rows: Sequence[Row], new_rows: Sequence[Row], place: int) -> bool:
    old, new = {row[place] for row in old_rows}, {row[place] for row in new_rows}
    return 2 * len(old & new) >= min(len(old), len(new))


def _tells_apart(rows: Sequence[Row], place: int) -> bool:
    values = {row[place] for row in rows}
    return len(values) == len(rows) and "" not in values
