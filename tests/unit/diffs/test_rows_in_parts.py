"""Large tables are compared a part at a time: with the result of DuckDB and of one part, in little memory."""

import csv
import io
import random
import tempfile
import tracemalloc
from itertools import pairwise

import duckdb
import pytest

from tamias.features.diffs import matching
from tamias.features.diffs.compare import diff
from tamias.model.diff import DiffKind

CSV = "text/csv"
TSV = "text/tab-separated-values"


@pytest.fixture
def in_parts(monkeypatch):
    """Lets parts be small, so that small tables have many."""

    def use(size):
        monkeypatch.setattr(matching, "PIECE", size)
        monkeypatch.setattr(matching, "PART", 2 * size)
        monkeypatch.setattr(matching, "HELD_BYTES", 8 * size)

    return use


def counted_by_duckdb(old, new, key, delimiter=","):
    """Rows added, removed and changed, by a key or whole; one without any value is no row."""
    with duckdb.connect() as database:
        for name, path in (("old", old), ("new", new)):
            database.execute(
                f"CREATE VIEW {name} AS FROM read_csv('{path}', all_varchar = true, header = true,"
                f" delim = '{delimiter}', quote = '\"', escape = '\"', null_padding = true, parallel = false)"
                " WHERE trim(concat_ws('', *COLUMNS(*))) <> ''"
            )
        names = [row[0] for row in database.execute("DESCRIBE new").fetchall()]
        assert names == [row[0] for row in database.execute("DESCRIBE old").fetchall()]
        if key is None:
            queries = [
                "SELECT count(*) FROM (FROM new EXCEPT ALL FROM old)",
                "SELECT count(*) FROM (FROM old EXCEPT ALL FROM new)",
                "SELECT 0",
            ]
        else:
            differs = " OR ".join(f'old."{name}" IS DISTINCT FROM new."{name}"' for name in names)
            queries = [
                f'SELECT count(*) FROM new ANTI JOIN old USING ("{key}")',
                f'SELECT count(*) FROM old ANTI JOIN new USING ("{key}")',
                f'SELECT count(*) FROM old JOIN new ON old."{key}" = new."{key}" WHERE {differs}',
            ]
        return tuple(database.execute(query).fetchall()[0][0] for query in queries)


def edited(seed):
    """Two versions of a table: rows gone, come, changed and repeated, in another order."""
    chance = random.Random(seed)
    has_key = seed % 2
    values = [str(chance.randrange(10)) for _ in range(7)] + ["", 'the "old" town, Linz']

    def row(number):
        cells = [chance.choice(values) for _ in range(3)]
        return [f"k{number}", *cells, f"{number * 7}"] if has_key else cells

    old = [row(number) for number in range(chance.randrange(1, 900))]
    new = [list(each) for each in old if chance.random() < 0.9]
    for each in new:
        if chance.random() < 0.1:
            each[2] = chance.choice(values)
    new += [row(1000 + number) for number in range(chance.randrange(1, 80))]
    if seed % 3:
        chance.shuffle(new)
    header = ["name", "a", "b", "c", "seven"] if has_key else ["x", "y", "z"]
    return [_text([header, *each]) for each in (old, new)]


def _text(rows):
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


@pytest.mark.parametrize("seed", range(12))
def test_many_parts_and_duckdb_find_what_one_part_finds(compared, versions, in_parts, seed):
    old, new = edited(seed)
    at_once = compared(old, new, CSV, changes=20)
    in_parts(8)
    assert compared(old, new, CSV, changes=20) == at_once
    found = at_once.added, at_once.removed, at_once.changed
    assert (at_once.kind, found) == (
        DiffKind.ROWS,
        counted_by_duckdb(*versions(old, new), at_once.key),
    )


@pytest.mark.nightly
def test_real_histories_are_counted_as_by_duckdb(suites, in_parts):
    in_parts(1024)
    compared = 0
    for folder in sorted(suites("real-histories").iterdir()):
        steps = list(pairwise(sorted(folder.iterdir()))) if folder.name.endswith("sv") else []
        delimiter = "\t" if folder.name.endswith("tsv") else ","
        for old, new in steps[:: max(1, len(steps) // 6)]:
            found = diff(old, new, TSV if delimiter == "\t" else CSV)
            has_names = (found.key or "") in old.read_text().partition("\n")[0]
            if found.kind is DiffKind.ROWS and found.columns is None and has_names and not found.is_empty:
                counts = found.added, found.removed, found.changed
                assert counts == counted_by_duckdb(old, new, found.key, delimiter), (old, new)
                compared += 1
    assert compared >= 10


def test_rows_without_a_key_that_are_all_the_same_are_told_by_their_last_places(compared, in_parts):
    in_parts(8)
    found = compared("a,b\n" + "x,y\n" * 100 + "p,q\n", "a,b\n" + "x,y\n" * 30, CSV, changes=3)
    assert (found.removed, found.added, len(found.changes), found.truncated) == (71, 0, 3, True)
    assert [change.old for change in found.changes] == [{"a": "x", "b": "y"}] * 3


@pytest.mark.nightly
def test_memory_does_not_grow_with_the_rows_and_no_file_is_left(versions, in_parts, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "spill"))
    (tmp_path / "spill").mkdir()
    in_parts(1 << 12)

    def peak(length):
        rows = [f"{number},{number * 3}" for number in range(length)]
        texts = ("id,b\n" + "\n".join(each) for each in (rows, reversed(rows[9:])))
        old, new = versions(*texts)
        tracemalloc.start()
        try:
            found = diff(old, new, CSV)
            return found.removed, tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    (_, small), (removed, large) = peak(80_000), peak(240_000)
    assert removed == 9
    assert large < 1.1 * small
    assert not any((tmp_path / "spill").iterdir())
