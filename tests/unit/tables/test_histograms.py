"""How the numbers of a column are spread, as `tamias.read` tells it."""

import numpy
import pytest

import tamias


def histogram(tmp_path, values):
    file = tmp_path / "t.csv"
    file.write_text("name,value\n" + "".join(f"n{place},{value}\n" for place, value in enumerate(values)))
    [table] = tamias.read(file).profile.tables
    return table.columns[1].histogram


@pytest.mark.parametrize("scale", [1, 0.01, 1000])
def test_a_histogram_is_that_of_numpy(tmp_path, scale):
    values = [round(scale * (n * n % 97 + 0.5), 3) for n in range(500)]
    assert list(histogram(tmp_path, values)) == numpy.histogram(values, bins=12)[0].tolist()


def test_a_large_column_is_told_by_a_sample(tmp_path):
    found = histogram(tmp_path, [n % 12 for n in range(12_000)])
    assert sum(found) == 1000
    assert all(40 < each < 130 for each in found)


def test_few_values_and_texts_have_none(tmp_path):
    assert histogram(tmp_path, [1, 2, 3] * 20) == ()
    assert histogram(tmp_path, ["red", "green", "blue", "grey", "pink"] * 20) == ()


def test_gaps_and_footnotes_are_in_no_part(tmp_path):
    assert sum(histogram(tmp_path, [*range(100), "", "n/a"])) == 100
