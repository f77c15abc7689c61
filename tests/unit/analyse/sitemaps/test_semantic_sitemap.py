"""Semantic Sitemaps: the datasets of the paper's listings, of its text, and of the wild."""

import pytest

from tamias.model.site import Location, Prefix, SemanticDataset, covers
from tests.messages import unsaid

PLAIN = "http://www.sitemaps.org/schemas/sitemap/0.9"
SPACE = "http://sw.deri.org/2007/07/sitemapextension/scschema.xsd"
MISPRINT = "http://sw.deriv.org/2007/07/sitemapextension/scschema.xsd"

WITH_HOSTS = f"""<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
  xsi:schemaLocation="{PLAIN} {PLAIN}/sitemap.xsd" xmlns="{PLAIN}" xmlns:sc="{MISPRINT}">
<sc:dataset>
  <sc:datasetLabel>Product Catalog
    for Example.org</sc:datasetLabel>
  <sc:datasetURI>http://example.org/aboutcatalog.rdf#catalog</sc:datasetURI>
  <sc:dataDumpLocation>http://example.org/cataloguedump.rdf</sc:dataDumpLocation>
  <sc:dataDumpLocation
    priority="0">http://backup.example.org/cataloguedump.rdf</sc:dataDumpLocation>
  <sc:sparqlEndPoint priority="10">http://example.org/queryengine/sparql
  </sc:sparqlEndPoint>
  <sc:sparqlEndPoint>http://secondary.example.org/queryengine/sparql
  </sc:sparqlEndPoint>
  <sc:linkedDataPrefix>http://example.org/products/</sc:linkedDataPrefix>
  <changefreq>monthly</changefreq>
</sc:dataset>
</urlset>"""


def sitemap(*entries, space=SPACE, prefix="sc"):
    return f'<urlset xmlns="{PLAIN}" xmlns:{prefix}="{space}">{"".join(entries)}</urlset>'


def dataset(*fields):
    return f"<sc:dataset>{''.join(fields)}</sc:dataset>"


def field(name, text, attributes=""):
    return f"<sc:{name} {attributes}>{text}</sc:{name}>"


def only(found):
    [one] = found.datasets
    return one


def complaint(found):
    [problem] = found.problems
    return problem.what


def test_the_listing_with_hosts_and_priorities_is_read_whole(read):
    found = read(WITH_HOSTS)
    assert found.problems == []
    assert only(found) == SemanticDataset(
        uri="http://example.org/aboutcatalog.rdf#catalog",
        label="Product Catalog for Example.org",
        prefixes=(Prefix(iri="http://example.org/products/"),),
        dumps=(
            Location(url="http://example.org/cataloguedump.rdf"),
            Location(url="http://backup.example.org/cataloguedump.rdf", priority=0),
        ),
        endpoints=(
            Location(url="http://example.org/queryengine/sparql", priority=10),
            Location(url="http://secondary.example.org/queryengine/sparql"),
        ),
        changefreq="monthly",
    )


@pytest.mark.parametrize("space", [SPACE, MISPRINT])
@pytest.mark.parametrize("prefix", ["sc", "cs", "x"])
def test_both_namespaces_count_and_the_prefix_does_not(read, space, prefix):
    text = f"<{prefix}:dataset><{prefix}:datasetLabel>x</{prefix}:datasetLabel></{prefix}:dataset>"
    found = read(sitemap(text, space=space, prefix=prefix))
    assert (only(found).label, found.problems) == ("x", [])


def test_the_extension_may_be_the_default_namespace(read):
    text = (
        f'<urlset xmlns="{PLAIN}"><dataset xmlns="{SPACE}"><datasetLabel>x</datasetLabel></dataset></urlset>'
    )
    found = read(text)
    assert (only(found).label, found.problems) == ("x", [])


@pytest.mark.parametrize("declared", ['xmlns:sc="http://unknown.example/"', ""])
def test_an_unknown_namespace_is_accepted_and_told(read, declared):
    found = read(f'<urlset xmlns="{PLAIN}" {declared}>{dataset(field("datasetLabel", "x"))}</urlset>')
    assert only(found).label == "x"
    assert not unsaid(complaint(found))


def test_datasets_stand_beside_addresses_and_for_themselves(read):
    found = read(
        sitemap(
            "<url><loc>http://a.example/1</loc></url>",
            dataset(field("datasetLabel", "x"), field("dataDumpLocation", "/x")),
            "<url><loc>http://a.example/2</loc></url>",
            dataset(field("datasetLabel", "y")),
        )
    )
    assert found.pages == ["http://a.example/1", "http://a.example/2"]
    assert [(each.label, len(each.dumps)) for each in found.datasets] == [("x", 1), ("y", 0)]


def test_a_dataset_covers_the_union_of_its_prefixes_letter_by_letter(read):
    prefixes = ["http://a.example/p/", "http://A.example/%7Eq"]
    found = only(read(sitemap(dataset(*(field("linkedDataPrefix", each) for each in prefixes)))))
    assert [prefix.iri for prefix in found.prefixes] == prefixes
    asked = ["http://a.example/p/1", "http://A.example/%7Eq#x", "http://a.example/~q", "http://a.example/p"]
    assert [covers(found, iri) for iri in asked] == [True, True, False, False]


def test_a_dataset_without_a_prefix_covers_nothing(read):
    assert not covers(only(read(sitemap(dataset()))), "http://a.example/")


def test_all_dumps_are_kept_in_order(read):
    found = only(read(sitemap(dataset(*(field("dataDumpLocation", f"/{n}.rdf") for n in range(3))))))
    assert [dump.url for dump in found.dumps] == [f"http://a.example/{n}.rdf" for n in range(3)]


@pytest.mark.parametrize("name", ["dataFragmentDump", "dataFragmentDumpLocation", "DATAFRAGMENTDUMP"])
def test_fragments_are_known_by_both_names(read, name):
    found = read(sitemap(dataset(field(name, "/1"), field(name, "/2", 'priority="3"'))))
    assert [part.url for part in only(found).fragments] == ["http://a.example/1", "http://a.example/2"]
    assert found.problems == []


def test_a_single_fragment_is_told_and_used(read):
    found = read(sitemap(dataset(field("dataFragmentDump", "/1"))))
    assert len(only(found).fragments) == 1
    assert "single fragment" in complaint(found)


@pytest.mark.parametrize(
    "name",
    [
        "sparqlEndpointLocation",
        "sparqlEndPoint",
        "sparqlEndpoint",
        "sparqlendpointlocation",
        "SPARQLEndPoint",
    ],
)
def test_endpoints_are_known_by_every_spelling(read, name):
    found = only(read(sitemap(dataset(field(name, "http://a.example/sparql")))))
    assert found.endpoints == (Location(url="http://a.example/sparql"),)


def test_the_uri_of_a_dataset_keeps_its_fragment_and_is_fetched_without(read):
    found = read(sitemap(dataset(field("datasetURI", "http://a.example/about.rdf#catalog"))))
    assert only(found).uri == "http://a.example/about.rdf#catalog"
    assert found.pages == ["http://a.example/about.rdf"]


def test_the_uri_of_a_dataset_under_its_own_prefix_is_not_fetched(read):
    found = read(
        sitemap(
            dataset(
                field("datasetURI", "http://a.example/p/x"), field("linkedDataPrefix", "http://a.example/p/")
            )
        )
    )
    assert found.pages == []


def test_of_two_uris_the_first_counts(read):
    found = read(sitemap(dataset(field("datasetURI", "http://a/1"), field("datasetURI", "http://a/2"))))
    assert only(found).uri == "http://a/1"
    assert "more than one datasetURI" in complaint(found)


def test_a_uri_names_the_first_of_two_datasets(read):
    found = read(sitemap(*[dataset(field("datasetURI", "http://a/1"), field("datasetLabel", "x"))] * 2))
    assert [(each.uri, each.label) for each in found.datasets] == [("http://a/1", "x"), (None, "x")]
    assert "of two datasets" in complaint(found)


@pytest.mark.parametrize("name", ["datasetLabel", "changefreq"])
def test_of_two_labels_or_frequencies_the_first_counts(read, name):
    one = field(name, "daily") if name == "datasetLabel" else "<changefreq>daily</changefreq>"
    found = read(sitemap(dataset(one, one.replace("daily", "weekly"))))
    assert "daily" in (only(found).label, only(found).changefreq)
    assert f"more than one {name}" in complaint(found)


def test_samples_and_dates_are_read(read):
    found = read(
        sitemap(
            dataset(
                field("sampleURI", "http://a.example/p/1"),
                field("sampleURI", "urn:isbn:1"),
                "<lastmod>1970-01-02</lastmod><changefreq>weekly</changefreq>",
            )
        )
    )
    one = only(found)
    assert (one.samples, one.lastmod_ms, one.changefreq) == (
        ("http://a.example/p/1", "urn:isbn:1"),
        86_400_000,
        "weekly",
    )
    assert (found.pages, found.problems) == ([], [])


def test_a_frequency_in_the_wrong_namespace_is_read_and_told(read):
    found = read(sitemap(dataset(field("changefreq", "weekly"))))
    assert only(found).changefreq == "weekly"
    assert "plain sitemap" in complaint(found)


@pytest.mark.parametrize(
    ("attributes", "priority"),
    [("", None), ('priority="0"', 0), ('priority=" 10 "', 10), ('sc:priority="4"', 4)],
)
def test_a_priority_is_a_whole_number_from_zero_on(read, attributes, priority):
    found = read(sitemap(dataset(field("dataDumpLocation", "/x", attributes))))
    assert (only(found).dumps[0].priority, found.problems) == (priority, [])


@pytest.mark.parametrize("priority", ["-1", "0.5", "high", "", "9" * 5000])
def test_a_priority_that_is_none_counts_as_one_and_is_told(read, priority):
    found = read(sitemap(dataset(field("sparqlEndpoint", "/x", f'priority="{priority}"'))))
    assert only(found).endpoints[0].weight == 1
    assert "read as 1" in complaint(found)


def test_slicing_and_graph_names_of_the_later_specification_are_read(read):
    one = only(
        read(
            sitemap(
                dataset(
                    field("linkedDataPrefix", "http://a.example/p/", 'slicing="subject-object"'),
                    field("sparqlEndpointLocation", "http://a.example/s", 'slicing="CBD"'),
                    field("sparqlGraphName", "http://a.example/g"),
                )
            )
        )
    )
    assert one.prefixes[0].slicing == "subject-object"
    assert one.endpoints[0].slicing == "cbd"
    assert one.graph_names == ("http://a.example/g",)


def test_a_location_that_is_no_address_is_told_and_the_rest_counts(read):
    found = read(sitemap(dataset(field("dataDumpLocation", "http://[x"), field("dataDumpLocation", "/y"))))
    assert [dump.url for dump in only(found).dumps] == ["http://a.example/y"]
    assert "is not a URL" in complaint(found)


def test_a_dataset_in_an_address_is_none(read):
    assert read(sitemap(f"<url><loc>/x</loc>{dataset(field('datasetLabel', 'x'))}</url>")).datasets == []


def test_words_of_other_namespaces_in_a_dataset_are_passed_over(read):
    text = dataset('<o:dataDumpLocation xmlns:o="http://o.example/">/x</o:dataDumpLocation>')
    assert only(read(sitemap(text))) == SemanticDataset()
