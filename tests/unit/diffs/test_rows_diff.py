"""Rows: exact counts, by a key or whole, whatever the order, the quotes, the encoding or the columns."""

import csv
import io
import random
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tamias.model.diff import Change, Columns, DiffKind, What
from tamias.model.errors import UsageError
from tests.examples import examples
from tests.messages import unsaid

CSV = "text/csv"


def csv_text(rows, **dialect):
    text = io.StringIO(newline="")
    csv.writer(text, **dialect).writerows(rows)
    return text.getvalue()


@pytest.mark.nightly
def test_a_large_table_is_counted_exactly(compared, stopwatch):
    random_ = random.Random(7)
    header = ["id", "kind", "amount", "name", "place", "lon", "lat", "code"]

    def row(number):
        return [
            f"id{number:07d}",
            random_.choice("ABCDEFGH") * 3,
            random_.randint(1, 10**6),
            f"the thing called {random_.randint(1, 10**9)}",
            random_.choice(["Wien", "Graz", "Linz, Donau", 'the "old" town', "Sankt Pölten"]),
            f"{random_.uniform(9, 17):.6f}",
            f"{random_.uniform(46, 49):.6f}",
            random_.randint(1, 10**12),
        ]

    old = [row(number) for number in range(185_000)]
    gone = set(random_.sample(range(185_000), 966))
    new = [list(each) for number, each in enumerate(old) if number not in gone]
    for number in random_.sample(range(len(new)), 4_482):
        new[number][2] += 1_000_000
    new += [row(185_000 + number) for number in range(966)]
    random_.shuffle(new)
    texts = csv_text([header, *old]), csv_text([header, *new])
    with stopwatch(f"{len(texts[0]) / 1e6:.1f} MB of rows by key"):
        found = compared(*texts, CSV)
    assert (found.kind, found.key) == (DiffKind.ROWS, "id")
    assert (found.added, found.removed, found.changed) == (966, 966, 4_482)
    assert Counter(change.what for change in found.changes) == {
        What.CHANGED: 34,
        What.ADDED: 33,
        What.REMOVED: 33,
    }
    assert found.truncated


def test_a_change_tells_the_key_and_the_cells_that_changed(compared):
    found = compared("id,a,b\n1,x,y\n2,x,y\n3,q,q\n", "id,a,b\n2,x,z\n1,x,y\n4,n,\n", CSV)
    assert found.key == "id"
    assert found.changes == [
        Change(What.CHANGED, "2", {"b": "y"}, {"b": "z"}),
        Change(What.ADDED, "4", None, {"id": "4", "a": "n", "b": ""}),
        Change(What.REMOVED, "3", {"id": "3", "a": "q", "b": "q"}, None),
    ]
    assert not found.truncated


cells = st.text(alphabet='ab ,"\n;é', max_size=4)
tables = st.dictionaries(st.integers(0, 30), st.tuples(cells, cells), min_size=1, max_size=15)


@settings(max_examples=examples(80), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(old=tables, new=tables, seed=st.integers(0, 9))
def test_counts_by_a_given_key_are_exact_for_any_tables(counts, old, new, seed):
    rows = [[key, *values] for key, values in new.items()]
    random.Random(seed).shuffle(rows)
    header = ["identifier", "first", "second"]
    was = csv_text([header, *([key, *values] for key, values in old.items())])
    expected = (
        len(new.keys() - old.keys()),
        len(old.keys() - new.keys()),
        sum(old[key] != new[key] for key in old.keys() & new.keys()),
    )
    kind, *found = counts(was, csv_text([header, *rows], quoting=csv.QUOTE_ALL), CSV, key="identifier")
    if not any(expected) and kind is DiffKind.LINES:
        # A row that has no more than its first cell may be a title of those below it.
        assert not all(map(any, new.values()))
        assert list(old) != [row[0] for row in rows]
    elif old.keys() & new.keys():
        assert (kind, tuple(found)) == (DiffKind.ROWS, expected)
    else:
        assert (found[0], found[1]) == (len(new), len(old))


def test_without_a_key_equal_rows_are_matched_as_often_as_they_stand(counts):
    old = "a,b\nx,y\nx,y\np,q\n"
    new = "a,b\np,q\nx,y\np,q\nz,z\n"
    assert counts(old, new, CSV) == (DiffKind.ROWS, 2, 1, 0)


@pytest.mark.parametrize(
    "new",
    [
        'id,name\r\n"1","ä"\r\n2,b\r\n',
        "2;b\n1;ä\n".replace("2;b", "id;name\n2;b"),
        "\ufeffid,name\n1,ä\n2,b\n",
        "id\tname\n1\tä\n2\tb",
        "id,name\n\n1,ä\n2,b\n".encode("cp1252"),
        "id,name\n1,ä\n2,b\n".encode("utf-16"),
    ],
    ids=["quotes and CRLF", "delimiter and order", "mark", "tabs", "Windows-1252", "UTF-16"],
)
def test_the_same_cells_written_in_another_way_are_the_same(counts, new):
    assert counts("id,name\n1,ä\n2,b\n", new, CSV) == (DiffKind.ROWS, 0, 0, 0)


def test_a_tab_separated_table_may_have_commas(compared):
    tsv = "text/tab-separated-values"
    assert compared("id\tx\n1\ta,b\n2\tc,d\n", "id\tx\n1\ta,b\n2\tc,e\n", tsv).changed == 1


def test_a_cell_may_have_line_ends(compared):
    found = compared('id,t\n1,"a\nb"\n2,"c\nd"\n', 'id,t\n1,"a\nd"\n2,"c\nd"\n', CSV)
    assert found.changes == [Change(What.CHANGED, "1", {"t": "a\nb"}, {"t": "a\nd"})]


def test_columns_that_come_go_and_move_are_told_and_the_others_compared(compared):
    found = compared("id,a,b\n1,x,y\n2,x,y\n", "b,id,new\ny,1,0\nz,2,0\n", CSV)
    assert found.columns == Columns(added=["new"], removed=["a"], renamed=[], moved=True)
    assert (found.added, found.removed, found.changed) == (0, 0, 1)
    [problem] = found.notes
    assert not unsaid(problem, "2")


def test_a_renamed_column_is_the_same_column(compared):
    found = compared("id,town\n1,Wien\n2,Graz\n", "id,city\n1,Wien\n2,Linz\n", CSV)
    assert found.columns == Columns(renamed=[("town", "city")])
    assert found.changes == [Change(What.CHANGED, "2", {"city": "Graz"}, {"city": "Linz"})]


def test_a_replaced_column_is_not_a_renamed_one(compared):
    found = compared("id,town\n1,Wien\n2,Graz\n", "id,price\n1,7.5\n2,8.5\n", CSV)
    assert found.columns == Columns(added=["price"], removed=["town"])


def test_the_key_is_the_unique_column_that_matches_most_rows(compared):
    found = compared("value,nr\n0.1,1\n0.2,2\n0.3,3\n", "value,nr\n0.4,1\n0.5,2\n0.3,3\n", CSV)
    assert (found.key, found.changed) == ("nr", 2)


def test_a_given_key_that_is_not_unique_is_told(compared):
    found = compared("a,b\n1,x\n1,y\n", "a,b\n1,x\n1,z\n", CSV, key="a")
    assert (found.added, found.removed, found.key) == (1, 1, None)
    [problem] = found.notes
    assert not unsaid(problem, "a", "1")


def test_a_given_key_that_is_not_there_is_an_error(compared):
    with pytest.raises(UsageError, match="no column 'c' in both versions; they have 'a', 'b'"):
        compared("a,b\n1,x\n2,y\n", "a,b\n1,x\n2,z\n", CSV, key="c")


def test_a_table_without_a_header_has_numbered_columns(compared):
    found = compared("1,2.5\n2,3.5\n", "1,2.5\n2,4.5\n", CSV)
    assert found.changes == [Change(What.CHANGED, "2", {"column_2": "3.5"}, {"column_2": "4.5"})]


def test_lines_above_the_table_are_not_rows(compared):
    found = compared("As of May\nid,a\n1,x\n2,y\n", "As of June\nid,a\n1,x\n2,z\n", CSV)
    assert (found.key, found.changed, found.added) == ("id", 1, 0)
    [problem] = found.notes
    assert not unsaid(problem)


def test_a_row_that_is_too_short_or_too_long_is_still_a_row(counts):
    old = "id,a,b\n1,x,y\n2,x\n3,x,y,z\n4,x,y\n"
    new = "id,a,b\n1,x,y\n2,x,\n3,x,y,q\n4,x,y\n"
    assert counts(old, new, CSV) == (DiffKind.ROWS, 0, 0, 1)


def test_a_stray_quote_does_not_swallow_the_table(compared):
    old = "id,size\n1,a\n" + '2,"5 inch\n' + "".join(f"{n},{'x' * 90}\n" for n in range(3, 100_000))
    new = old.replace("99999,x", "99999,y")
    assert compared(old, new, CSV).changed == 1


def test_long_cells_and_many_cells_are_cut(compared):
    header = ",".join(f"c{n}" for n in range(300))
    old = f"id,{header}\n1{',x' * 300}\n2{',x' * 300}\n"
    new = f"id,{header}\n1{',x' * 300}\n2{',y' * 299},{'z' * 900}\n"
    found = compared(old, new, CSV)
    assert len(found.changes[0].new) == 100
    found = compared("id,a\n1,x\n2,x\n", f"id,a\n1,x\n2,{'z' * 900}\n", CSV)
    assert found.changes[0].new == {"a": "z" * 500 + "…"}


def test_a_table_of_ten_thousand_columns_is_compared(compared):
    header = ",".join(f"c{n}" for n in range(10_000))
    rows = [f"{n}" + f",{n}" * 9_999 for n in range(30)]
    old = "\n".join([header, *rows])
    new = "\n".join([header, *rows[:-1], rows[-1][:-2] + "77"])
    found = compared(old, new, CSV)
    assert (found.kind, found.changed) == (DiffKind.ROWS, 1)
    assert list(found.changes[0].new) == ["c9999"]


def test_an_empty_version_has_lost_all_rows(counts):
    assert counts("id,a\n1,x\n", "", CSV) == (DiffKind.ROWS, 0, 1, 0)
