"""The licence that a portal names is in all that is said of a file; so is what is a high-value dataset."""

import json
import re
import zipfile

import httpx
import pytest
from pyoxigraph import RdfFormat, parse

from tamias.crawl.revisit.change_hints import describe
from tamias.model.dataset import Dataset, DcatProperty, Distribution
from tests import commands

from .conftest import PORTAL, START, Filled, Running

FILES = {
    "http://one.example/a.csv": "cc-by-4.0",
    "http://one.example/b.csv": "Ask the office.",
    "http://one.example/c.csv": None,
}
EU_CC_BY = "http://publications.europa.eu/resource/authority/licence/CC_BY_4_0"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A service over three files of a portal: with the word, the text, and without a licence."""
    filled = Filled(tmp_path_factory.mktemp("licences"))
    named = {filled.put(url, b"a\n1\n"): licence for url, licence in FILES.items()}
    hvd = DcatProperty("dcatap:hvdCategory", "http://data.europa.eu/bna/c_ac64a52d")
    datasets = [
        Dataset(
            iri=f"{PORTAL}{number}", record=str(number), title="A", licence=licence,
            distributions=(Distribution(url=url),), more=(hvd,) if number == 1 else (),
        )
        for number, (url, licence) in enumerate(FILES.items())
    ]  # fmt: skip
    filled.session.transact(lambda cursor: describe(cursor, PORTAL, "ckan", START, datasets))
    filled.close()
    running = Running(filled.data, "--no-crawl", TAMIAS_SECRET="x" * 20)
    yield running.address, list(named), filled.data
    running.stop()


def test_the_page_of_a_dataset_names_the_licence(served):
    address, names, _ = served
    found = []
    for name in names:
        page = httpx.get(f"{address}/dataset/{name}", headers={"Accept": "text/html"}).text
        script = re.search(r'<script type="application/ld\+json">(.*?)</script>', page, re.DOTALL)
        found.append(json.loads(script[1]).get("license"))
    assert found == [[EU_CC_BY], ["Ask the office."], None]


@pytest.mark.parametrize("version", ["", "/1"])
def test_the_link_header_names_the_licence_that_has_an_address(served, version):
    address, names, _ = served
    found = [httpx.get(f"{address}/dataset/{name}{version}").headers["link"] for name in names]
    assert [re.findall('<([^>]+)>; rel="license"', each) for each in found] == [[EU_CC_BY], [], []]


def test_rdf_has_the_licence_of_each_form_and_of_the_newest_file(served):
    address, names, _ = served
    found = []
    for name in names:
        quads = list(parse(httpx.get(f"{address}/dataset/{name}.nt").content, format=RdfFormat.N_TRIPLES))
        labels = {quad.subject: quad.object.value for quad in quads if quad.predicate.value.endswith("label")}
        found.append(
            {
                (quad.subject.value.removeprefix(address), labels.get(quad.object, quad.object.value))
                for quad in quads
                if quad.predicate.value == "http://purl.org/dc/terms/license"
            }
        )
    expected = [
        {
            (f"/dataset/{name}#distribution", licence),
            (f"/dataset/{name}/1#distribution", licence),
            (f"/api/v1/get/file/id/{name}_1", licence),
        }
        for name, licence in zip(names, (EU_CC_BY, "Ask the office."), strict=False)
    ]
    assert found == [*expected, set()]


@pytest.mark.parametrize("version", ["1.1", "3"])
def test_data_json_names_the_licence(served, version):
    told = httpx.get(f"{served[0]}/data.json", params={"version": version}).json()["dataset"]
    found = {each["identifier"].rpartition("/")[2]: [form.get("license") for form in each["distribution"]]
             for each in told}  # fmt: skip
    assert found[served[1][0]] == [EU_CC_BY] * 2
    assert found[served[1][2]] == [None] * 2


def test_rest_says_which_portal_names_which_licence(served):
    address, *_ = served
    told = [httpx.get(f"{address}/api/v1/get/dataset/{url}").json()["named_by"][0] for url in FILES]
    assert [(each["portal"], each["licence"]) for each in told] == [(PORTAL, each) for each in FILES.values()]


def test_a_crate_has_the_licence_of_each_folder(served, tmp_path):
    _, names, data = served
    done = commands.run(
        ["export", "--data", str(data), "--format", "ro-crate", "-o", str(tmp_path / "c.zip")]
    )
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(tmp_path / "c.zip") as zipped:
        (named,) = [each for each in zipped.namelist() if each.endswith("ro-crate-metadata.json")]
        graph = json.loads(zipped.read(named))["@graph"]
    found = {each["@id"]: each.get("license") for each in graph}
    assert [found[f"data/{name}/"] for name in names] == [["cc-by-4.0"], ["Ask the office."], None]


def test_files_of_high_value_datasets_are_listed_by_themselves(served):
    address, _, data = served
    wanted = ["http://one.example/b.csv"]
    assert [each["url"] for each in httpx.get(f"{address}/api/v1/resources?hvd=1").json()["items"]] == wanted
    done = commands.run(["list", "--data", str(data), "--hvd", "--json"], capture_output=True, text=True)
    assert [each["url"] for each in json.loads(done.stdout)] == wanted
