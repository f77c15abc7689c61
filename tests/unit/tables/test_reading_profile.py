"""`tamias.read` gives the profile of what consists of tables."""

import tamias


def test_a_table_that_is_read_has_a_profile(tmp_path):
    path = tmp_path / "orte.csv"
    path.write_text("Ort;Einwohner\nWien;1\nGraz;2\n")
    reading = tamias.read(path)
    assert (reading.profile.tables[0].rows, reading.problems) == (2, [])


def test_what_is_no_table_has_none():
    assert tamias.read(b"<http://e/a> a <http://e/B> .", media_type="text/turtle").profile is None
