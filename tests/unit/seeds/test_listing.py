"""Lists of seeds: what the columns of a CSV file say."""

import pytest

from tamias.model.item import TRUSTED
from tamias.seeds.files import ListSeeds


@pytest.fixture
def listed(tmp_path):
    def seeds(text):
        file = tmp_path / "seeds.csv"
        file.write_text(text)
        return list(ListSeeds().seeds(str(file)))

    return seeds


@pytest.mark.parametrize(
    ("type_", "kind", "tags"),
    [
        ("SPARQL", "sparql", (TRUSTED, "note=x")),
        ("ckan", "ckan", (TRUSTED, "note=x")),
        ("html", None, ("format=text/html", "note=x")),
        ("text/csv", None, ("format=text/csv", "note=x")),
        ("dump", None, ("note=x",)),
        ("DEREFERENCEABLE", None, ("note=x",)),
        ("", None, ("note=x",)),
    ],
)
def test_the_type_of_a_seed_is_obeyed(listed, type_, kind, tags):
    [seed] = listed(f"uri,type,note\nhttp://example.org/a,{type_},x\n")
    assert (seed.kind, seed.tags) == (kind, tags)


def test_a_prefix_of_the_address_says_more_than_its_type(listed):
    [seed] = listed("uri,type\nckan:http://example.org/a,sparql\n")
    assert seed.kind == "ckan"


def test_lines_may_end_as_on_any_system(listed):
    assert [seed.address for seed in listed("http://a.example/\r\nhttp://b.example/\rhttp://c.example/")] == [
        "http://a.example/",
        "http://b.example/",
        "http://c.example/",
    ]


def test_a_line_that_is_not_utf_8_is_named(tmp_path):
    file = tmp_path / "seeds.txt"
    file.write_bytes(b"\xef\xbb\xbfhttp://a.example/\n# none\nhttp://b.example/\xff\n")
    good, bad = ListSeeds().seeds(str(file))
    assert (good.address, good.problem) == ("http://a.example/", None)
    assert (bad.line, bad.problem) == (f"{file} line 3", "not UTF-8 text")
