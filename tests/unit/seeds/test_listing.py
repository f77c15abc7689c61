"""Lists of seeds: what the columns of a CSV file say."""

import pytest

from tamias.model.item import TRUSTED
from tamias.seeds.listing import ListSeeds


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
