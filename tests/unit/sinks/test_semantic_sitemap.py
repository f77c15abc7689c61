"""A Semantic Sitemap that was written reads as what was meant."""

import io

from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from tamias.analyse.sitemaps.urlset import SitemapAnalyser
from tamias.features.exports.semantic_sitemap import semantic_sitemap
from tamias.model.document import Document
from tamias.model.site import CHANGE_FREQUENCIES, Location, Prefix, SemanticDataset, SemanticDatasets
from tests.examples import examples

WORDS = st.text("abcXYZ09äß€😀&<>\"']", min_size=1, max_size=12)
URLS = st.builds(
    "http://h.example/{}?q={}".format, st.integers(0, 99), st.sampled_from(["1&amp;2", "a&b=c", "x"])
)
IRIS = st.builds("http://h.example/{}#{}".format, WORDS, st.integers())
SLICING = st.none() | st.sampled_from(["subject", "cbd", "<&\"'>"])
LOCATIONS = st.lists(
    st.builds(Location, url=URLS, priority=st.none() | st.integers(0, 999_999_999), slicing=SLICING),
    max_size=3,
).map(tuple)
DATASETS = st.builds(
    SemanticDataset,
    uri=st.none(),
    label=st.none() | st.lists(WORDS, min_size=1, max_size=3).map(" ".join),
    prefixes=st.lists(st.builds(Prefix, iri=IRIS, slicing=SLICING), max_size=2).map(tuple),
    dumps=LOCATIONS,
    fragments=LOCATIONS,
    endpoints=LOCATIONS,
    graph_names=st.lists(IRIS, max_size=2).map(tuple),
    samples=st.lists(IRIS, max_size=2).map(tuple),
    changefreq=st.none() | st.sampled_from(sorted(CHANGE_FREQUENCIES)),
    lastmod_ms=st.none() | st.integers(-60_000_000_000_000, 250_000_000_000_000),
)


def read_back(data):
    document = Document(
        url="http://h.example/sitemap.xml", stream=io.BytesIO(data), media_type="application/x-sitemap+xml"
    )
    findings = SitemapAnalyser().analyse(document)
    return [
        each for finding in findings if isinstance(finding, SemanticDatasets) for each in finding.datasets
    ]


@given(st.lists(DATASETS, max_size=4))
@settings(max_examples=examples(200))
def test_what_is_written_is_read_back(datasets):
    assert read_back(semantic_sitemap(datasets)) == datasets


def test_the_name_of_a_dataset_is_read_back():
    dataset = SemanticDataset(uri="http://h.example/about#me")
    assert read_back(semantic_sitemap([dataset])) == [dataset]


def test_what_xml_cannot_say_is_replaced():
    [dataset] = read_back(semantic_sitemap([SemanticDataset(label="a\0b\ud800c")]))
    assert dataset.label == "a\ufffdb\ufffdc"


def test_no_dataset_at_all_is_a_sitemap_too():
    assert len(etree.fromstring(semantic_sitemap([]))) == 0
