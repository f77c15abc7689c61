"""Quality, measured of what a portal describes and the archive got."""

import msgspec
import pytest

from tamias.features.dcat.measures import read_measures, record_id
from tamias.features.quality.metrics import measure_portals, measure_resources
from tamias.model.dataset import Dataset, Distribution

PORTAL = "https://portal.example.org/"


def dataset(record, *forms):
    return Dataset(
        iri=f"{PORTAL}dataset/{record}", record=record, title="Rain", keywords=("rain",), distributions=forms
    )


def form(name, **words):
    return Distribution(url=f"http://data.example/{name}", **{"format": "CSV", **words})


def values(corpus, subject):
    return {each.metric: each.value for each in read_measures(corpus.session, [subject])[subject]}


@pytest.fixture
def two_datasets(corpus):
    """One whose form came as told, and one with a form that came as a page and one that never came."""
    corpus.describe(
        dataset("good", form("a.csv", byte_size=4)),
        dataset("bad", form("b.csv"), form("c.csv"), form("d.csv")),
    )
    good, page, lost = (
        corpus.watch(f"http://data.example/{name}.csv", expected="text/csv") for name in "abc"
    )
    corpus.keep(good, b"a,b\n")
    corpus.visit(good)
    corpus.keep(page, b"<html>", "text/html")
    corpus.visit(page)
    corpus.visit(lost, fails=3)
    measure_portals(corpus.session)
    measure_resources(corpus.session)
    return corpus


def test_a_description_is_measured_by_what_came_of_it(two_datasets):
    found = values(two_datasets, record_id(PORTAL, "bad"))
    assert (found["rere"], found["acfo"]) == (0.5, 0.0)


def test_a_size_that_is_told_is_compared(two_datasets):
    assert values(two_datasets, record_id(PORTAL, "good"))["acsi"] == 1.0


def test_a_portal_has_the_mean_of_what_it_describes(two_datasets):
    found = values(two_datasets, PORTAL)
    names = [record_id(PORTAL, "good"), record_id(PORTAL, "bad")]
    both = [values(two_datasets, name)["mqa"] for name in names]
    assert (found["rere"], found["mqa"]) == (0.75, pytest.approx(sum(both) / 2))


def test_a_resource_is_measured_by_what_its_sources_promise(two_datasets):
    good, page = (values(two_datasets, each) for each in two_datasets_ids(two_datasets)[:2])
    assert (good, page) == ({"rere": 1.0, "acfo": 1.0, "acsi": 1.0}, {"rere": 1.0, "acfo": 0.0})


def two_datasets_ids(corpus):
    return [row[0] for row in corpus.execute("SELECT resource FROM resource ORDER BY url")]


def test_a_portal_whose_descriptions_have_vanished_says_so(two_datasets):
    two_datasets.describe(dataset("good", form("a.csv")), harvest=two_datasets.now + 1, whole=True)
    measure_portals(two_datasets.session)
    assert values(two_datasets, record_id(PORTAL, "bad")) == {"reme": 0.0}
    assert values(two_datasets, PORTAL)["reme"] == 0.5


def test_what_can_no_longer_be_told_is_taken_back(two_datasets):
    two_datasets.describe(dataset("good", form("a.csv")))
    measure_portals(two_datasets.session)
    assert "acsi" not in values(two_datasets, record_id(PORTAL, "good"))


def test_the_time_of_a_measure_tells_since_when_it_is_so(two_datasets):
    before = read_measures(two_datasets.session, [PORTAL])[PORTAL]
    measure_portals(two_datasets.session)
    assert read_measures(two_datasets.session, [PORTAL])[PORTAL] == before


def test_a_file_that_no_portal_lists_is_not_measured(two_datasets):
    before = measure_resources(two_datasets.session)
    two_datasets.watch("http://data.example/alone.csv")
    assert (before > 0, measure_resources(two_datasets.session)) == (True, before)


def test_a_form_is_found_under_any_writing_of_its_address(corpus):
    corpus.describe(dataset("good", form("%7Ea.csv#top")))
    corpus.visit(corpus.watch("http://data.example/~a.csv"), fails=1)
    measure_portals(corpus.session)
    assert values(corpus, record_id(PORTAL, "good"))["rere"] == 0.0


def test_an_address_that_is_none_was_never_tried(corpus):
    corpus.describe(msgspec.structs.replace(dataset("good"), distributions=(Distribution(url="see page"),)))
    measure_portals(corpus.session)
    assert "rere" not in values(corpus, record_id(PORTAL, "good"))
