"""Small tables are profiled without DuckDB, and exactly as DuckDB would have it."""

import os
import sys

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamias.features.tables import encoding
from tamias.features.tables.body import profile, small_profile
from tamias.features.tables.sketches import HASH_SQL, hashes_of
from tamias.features.tables.tables import PLAIN
from tests.examples import examples

PIECES = ((0, 9), (0, 300), (5, 20), (40, 60), (100, 150))
"""Of a file: rows from, and how many, below its first line."""
EVERY_PIECE = bool(os.environ.get("TAMIAS_NIGHTLY"))
"""Without it one piece of every third sample is compared, each time another one."""
QUICK = 150 if EVERY_PIECE else 8
"""So many of the pieces that are compared are beyond doubt."""


@pytest.fixture(scope="module")
def both_ways(tmp_path_factory):
    """`both_ways(data)` gives the profile by DuckDB, and the quick one; None where there is a doubt."""
    folder = tmp_path_factory.mktemp("both")
    path = folder / "body"

    def made(small_bytes):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(encoding, "SMALL", small_bytes)
            return profile(path, media_type="text/csv", declared_type=None, name="t.csv", scratch=folder)

    def without_duckdb():
        def refuse(*_, **__):
            raise AssertionError("DuckDB was asked")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(duckdb, "connect", refuse)
            found = made(encoding.SMALL)
        return None if any("DuckDB was asked" in problem for problem in found.problems) else found

    def make(data):
        path.write_bytes(data)
        expected = made(-1)
        found = without_duckdb()
        # The same as a worker makes it, of the bytes in hand.
        assert small_profile(data, media_type="text/csv", name="t.csv") in (None, found)
        return expected, found

    return make


def pieces(path):
    lines = path.read_bytes().split(b"\n")
    return [
        b"\n".join([lines[0], *lines[first : first + rows]]) for first, rows in PIECES if first < len(lines)
    ]


def test_pieces_of_real_tables_have_the_same_profile_both_ways(suites, both_ways, capsys):
    samples = [path for path in sorted(suites("real-csv-samples").rglob("*.*sv")) if path.is_file()]
    every = [
        piece
        for number, path in enumerate(samples)
        for place, piece in enumerate(pieces(path))
        if len(piece) <= encoding.SMALL and (EVERY_PIECE or (number - 3 * place) % (3 * len(PIECES)) == 0)
    ]
    quick = 0
    for piece in every:
        expected, found = both_ways(piece)
        assert found in (None, expected), piece[:2000]
        quick += found is not None
    with capsys.disabled():
        sys.stdout.write(f" [{quick} of {len(every)} pieces without DuckDB] ")
    assert quick >= QUICK


@pytest.mark.nightly
def test_versions_of_real_files_have_the_same_profile_both_ways(suites, both_ways):
    histories = [
        folder for folder in sorted(suites("real-histories").iterdir()) if folder.name.endswith("sv")
    ]
    newest = [max(folder.iterdir()) for folder in histories]
    found = [both_ways(piece) for path in newest for piece in pieces(path)]
    assert all(quick in (None, expected) for expected, quick in found)
    assert sum(quick is not None for _, quick in found) >= len(histories)


WORDS = st.text("abcXYZ äÖß-_/.:+*?!€–м市", min_size=1, max_size=12)  # noqa: RUF001
CELLS = (
    WORDS,
    WORDS.map("{} ".format),
    st.sampled_from(("n/a", "NA", "-", "", " ", "x", "null", "NaN", "inf", "k. A.")),
    st.integers(-(10**20), 10**20).map(str),
    st.integers(0, 3).map(str),
    st.integers(1900, 2100).map(str),
    st.integers(0, 200).map("{:05}".format),
    st.floats(allow_nan=False).map(repr),
    st.floats(-1000, 1000).map("{:.3f}".format),
    st.decimals(0, 10**7, places=2).map("{:,}".format),
    st.dates().map(str),
    st.dates().map("{0.day}.{0.month}.{0.year}".format),
    st.dates().map("{:%Y%m%d}".format),
    st.dates().map("{:%Y-%m}".format),
    st.datetimes().map("{:%Y-%m-%dT%H:%M:%S}".format),
    st.sampled_from(("ja", "Nein", "nein")),
    st.integers(0, 10**6).map("{} %".format),
    st.uuids().map(str),
)


@st.composite
def tables(draw):
    """Columns of one kind each, now and then with a cell of another; some quoted."""
    delimiter = draw(st.sampled_from(",;\t|"))
    kinds = draw(st.lists(st.sampled_from(CELLS), min_size=2, max_size=5))
    rows = draw(st.integers(1, 40))
    columns = []
    for number, kind in enumerate(kinds):
        cells = draw(st.lists(kind, min_size=rows, max_size=rows))
        if draw(st.booleans()):
            cells[draw(st.integers(0, rows - 1))] = draw(st.one_of(CELLS))
        if draw(st.integers(0, 5)) == 0:
            cells = [cell and f'"{cell}"' for cell in cells]
        columns.append([f"column {number}", *cells])
    return "".join(delimiter.join(row) + "\n" for row in zip(*columns, strict=True)).encode()


def test_any_table_has_the_same_profile_both_ways(both_ways):
    quick = []

    @given(tables())
    @settings(max_examples=examples(60))
    def compare(data):
        expected, found = both_ways(data)
        assert found in (None, expected)
        quick.append(found is not None)

    compare()
    assert any(quick)


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,x\\\n2,z\n",
        "a,b\n1,İ\n2,ΟΔΟΣ\n",
        "a,b\n1,1e400\n2,-0.0\n",
    ],
)
def test_what_is_in_doubt_is_left_to_duckdb(both_ways, text):
    assert both_ways(text.encode())[1] is None


def test_limits_hold_without_duckdb(profiled):
    text = "id,word\n" + "".join(f"{number},{'w' * 200}{number % 3}\n" for number in range(1, 30))
    table = profiled(text, value=10, top_values=2).tables[0]
    assert [column.max for column in table.columns] == ["29", "w" * 10]
    assert [len(column.top) for column in table.columns] == [0, 1]
    assert profiled(text, rows=10).tables[0].complete is False
    assert len(profiled(text, columns=1).tables[0].columns) == 1


def test_hashes_are_those_of_duckdb():
    words = ["a", "Wien", "ÄÖÜ", "2020-01-01", "two\nLines"]
    query = f"SELECT {HASH_SQL.format(v='w')} FROM (SELECT unnest(?) AS w)"
    expected = [row[0] for row in duckdb.execute(query, [words]).fetchall()]
    assert list(hashes_of(words)) == expected
    assert list(hashes_of(words[:4])) == expected[:4]
    assert list(hashes_of([])) == []


def test_characters_that_are_taken_are_trimmed_and_written_small_as_duckdb_does():
    taken = [chr(code) for code in range(1, 0x10000) if PLAIN.fullmatch(chr(code))]
    query = "SELECT w, trim(w), lower(w), lower('A' || w || 'B') FROM (SELECT unnest(?) AS w)"
    other = [
        each
        for each, trimmed, lower, within in duckdb.execute(query, [taken]).fetchall()
        if (each.strip() if each != "\t" else each, each.lower(), f"A{each}B".lower())
        != (trimmed.strip("\n"), lower, within)
    ]
    assert other == []
    assert len(taken) > 20_000
