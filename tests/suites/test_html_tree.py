"""Pages say the same as they are and after html5lib has written them again: one tree for all."""

import html5lib
import pytest
from html5lib.serializer import HTMLSerializer
from pyoxigraph import CanonicalizationAlgorithm, Dataset

import tamias

FOLDERS = ("real-html-samples", "rdfa-test-suite", "w3c-microdata-rdf-tests")


def written_again(page):
    """The tree of html5lib as HTML with every tag that may be left out."""
    tree = html5lib.parse(page.decode(), treebuilder="etree")
    serializer = HTMLSerializer(
        omit_optional_tags=False, quote_attr_values="always", resolve_entities=False,
        alphabetical_attributes=False, strip_whitespace=False, inject_meta_charset=False,
    )  # fmt: skip
    walker = html5lib.getTreeWalker("etree")
    return "".join(serializer.serialize(walker(tree))).encode("utf-8", "surrogatepass")


def said(page, url):
    found = tamias.read(page, base=url, media_type="text/html; charset=utf-8")
    quads = Dataset(found.quads)
    quads.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return quads, set(found.links)


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.suite(name)) for name in FOLDERS])
def test_pages_say_the_same_after_html5lib_has_written_them_again(suites, name):
    pages = sorted(suites(name).rglob("*.html"))
    different = []
    for path in pages:
        page = path.read_bytes().decode("utf-8", "replace").encode()
        url = f"http://example.org/{path.name}"
        if said(page, url) != said(written_again(page), url):
            different.append(str(path.relative_to(suites(name))))
    assert len(pages) > 5
    assert different == []
