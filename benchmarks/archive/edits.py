"""Histories of edits as real ones are: a day appended, a cell corrected, a column renamed, rows re-sorted."""

import csv
import io
from collections.abc import Callable, Iterator
from random import Random

Table = list[list[str]]
_REGIONS = ("Abruzzo", "Basilicata", "Calabria", "Campania", "Lazio", "Liguria", "Lombardia", "Marche")
_HEADER = ["day", "region", "cases", "tests", "rate", "note"]


def edited_history(name: str, count: int, days: int = 300) -> Iterator[bytes]:
    """The versions of one file; `name` is one of `KINDS`. The same words give the same bytes."""
    chance = Random(name)
    edits = KINDS[name]
    table = [_HEADER, *(row for day in range(days) for row in _day(day, chance))]
    for version in range(count):
        yield _written(table, quoted=name == "re-export" and version % 10 > 4)
        for edit, every in edits:
            if version % every == every - 1:
                table = edit(table, days + version, chance)


def _append(table: Table, day: int, chance: Random) -> Table:
    return [*table, *_day(day, chance)]


def _prepend(table: Table, day: int, chance: Random) -> Table:
    return [table[0], *_day(day, chance), *table[1:]]


def _correct(table: Table, _day: int, chance: Random) -> Table:
    changed = list(table)
    for _ in range(3):
        place = chance.randrange(1, len(table))
        row = list(table[place])
        row[2] = str(int(row[2]) + chance.randrange(-9, 10))
        changed[place] = row
    return changed


def _rename(table: Table, day: int, _chance: Random) -> Table:
    return [[*table[0][:3], f"tests_{day}", *table[0][4:]], *table[1:]]


def _sort(table: Table, day: int, _chance: Random) -> Table:
    column = day % 4
    return [table[0], *sorted(table[1:], key=lambda row: (row[column], row))]


def _day(day: int, chance: Random) -> Table:
    date = f"{2024 + day // 360}-{day // 30 % 12 + 1:02}-{day % 30 + 1:02}"
    return [
        [
            date,
            region,
            str(chance.randrange(5000)),
            str(chance.randrange(90_000)),
            f"{chance.random():.3f}",
            "",
        ]
        for region in _REGIONS
    ]


def _written(table: Table, *, quoted: bool) -> bytes:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL).writerows(table)
    return text.getvalue().encode()


Edit = Callable[[Table, int, Random], Table]
KINDS: dict[str, tuple[tuple[Edit, int], ...]] = {
    "append": ((_append, 1),),
    "newest first": ((_prepend, 1),),
    "correct": ((_append, 1), (_correct, 2)),
    "rename": ((_append, 1), (_correct, 3), (_rename, 20)),
    "re-sort": ((_append, 1), (_sort, 10)),
    "re-export": ((_append, 1), (_correct, 5)),
}
