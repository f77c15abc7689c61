"""The two portals of the manual: their rule files make of these pages what it says."""

from pathlib import Path

import pytest
from pyoxigraph import CanonicalizationAlgorithm, Dataset, RdfFormat, parse

from tamias.features.scraping.book import load_rules
from tamias.model.finding import Links, Problem, Quads
from tests.messages import unsaid

ROOT = Path(__file__).resolve().parents[4]
PAGES = Path(__file__).parent / "pages"
ADDRESSES = {
    "riverton-list": "https://data.riverton.example/datasets",
    "riverton-dataset": "https://data.riverton.example/dataset/street-trees",
    "herbarium-register": "https://herbarium.example/register",
    "herbarium-specimen": "https://herbarium.example/specimen/H-1887-12",
}


def findings(name):
    rules = load_rules(ROOT / "examples" / "rules")
    return list(rules.extract(ADDRESSES[name], (PAGES / f"{name}.html").read_bytes()))


def canonical(quads):
    dataset = Dataset(quads)
    dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return dataset


@pytest.mark.parametrize("name", ["riverton-dataset", "herbarium-register", "herbarium-specimen"])
def test_a_page_becomes_the_triples_beside_it(name):
    found = [quad for each in findings(name) if isinstance(each, Quads) for quad in each.quads]
    wanted = parse(path=str(PAGES / f"{name}.ttl"), format=RdfFormat.TURTLE)
    assert canonical(found) == canonical(wanted)


def test_the_list_of_datasets_leads_to_them_and_to_the_next_page():
    assert findings("riverton-list") == [
        Links(["/dataset/street-trees", "/dataset/bus-stops", "/datasets?page=2"], ADDRESSES["riverton-list"])
    ]


def test_the_register_leads_to_all_its_pages():
    links = [each for each in findings("herbarium-register") if isinstance(each, Links)]
    assert links[0].references == [
        f"https://herbarium.example/register?p={number}" for number in (2, 3, 4, 5)
    ]


def test_a_row_without_a_subject_is_told():
    problems = [each.what for each in findings("herbarium-register") if isinstance(each, Problem)]
    [problem] = problems
    assert not unsaid(problem, "herbarium.toml:9")


def test_the_label_leaves_nothing_to_complain_about():
    assert not [each for each in findings("herbarium-specimen") if isinstance(each, Problem)]


def test_the_rule_file_that_the_manual_shows_is_the_one_of_the_example():
    written = (ROOT / "examples" / "rules" / "riverton.toml").read_text()
    assert f"```toml\n{written}```" in (ROOT / "docs" / "scraping-rules.md").read_text()
