"""Links become items unless they are known; what is known is not resolved again, with the same result."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tamias.crawl.plan.admit import Admission, Reference
from tamias.model.errors import UrlError
from tamias.model.url import resolve, without_session
from tamias.settings import Settings

BASES = (
    "http://a.test/d/page",
    "http://a.test:8080/",
    "https://me@a.test/d/",
    "ftp://a.test/d/x",
    "http://a.test/x?q=/y/",
    "http://a.test/d/e//f/page?q=../z",
)
LINKS = (
    *(
        "/x",
        "//b.test/x",
        "///x",
        "/\\b.test/x",
        "/x/../y",
        "../x",
        "../../x",
        "../",
        "..//x",
        "./x",
        "x",
        "x:y",
        "x/ftp://a.test/x",
        "?q",
        "",
        "/",
        "/x#top",
        "/x y",
        "/é",
    ),
    *(
        "http://a.test/x",
        "http://a.test//b.test/x",
        "http://a.test:80/x",
        "HTTP://a.test/x",
        "http:/x",
        "http:x",
    ),
    *("http://b.test/x", "https://me@a.test/x", "https://a.test/x", "http://b.test", "http://b.test/x?sid=1"),
    *("mailto:me@a.test", "sparql http://b.test/x", "http://[bad", "httpx", "/x;jsessionid=1"),
)


def admitted(admission, links, base, depth=1):
    return [item.url for item in admission.items(Reference(links, base, depth, 1))]


def by_resolving(links, base, known):
    """What would become of each link by itself."""
    found = dict.fromkeys(without_session(url) for link in links if (url := resolved(link, base)) is not None)
    return [url for url in found if url.startswith(("http", "ftp")) and url not in known]


def resolved(link, base):
    try:
        return resolve(link, base)
    except UrlError:
        return None


@example(["http://a.test//b.test/x"], ["//b.test/x"], BASES[0], BASES[0])
@example(["https://me@a.test/x"], ["/x"], BASES[2], BASES[0])
@example(["https://a.test/x"], ["/x"], BASES[2], BASES[0])
@given(
    st.lists(st.sampled_from(LINKS) | st.text("/.x#?:\\ahtp@%é ", max_size=8), max_size=8),
    st.lists(st.sampled_from(LINKS) | st.text("/.x#?:\\ahtp@%é ", max_size=8), max_size=8),
    st.sampled_from(BASES),
    st.sampled_from(BASES),
)
def test_known_links_are_those_that_resolve_to_known_urls(earlier, later, base, other):
    admission = Admission(Settings(), [])
    admission.remember(admission.items(Reference(earlier, other, 1, 1)))
    known = by_resolving(earlier, other, ())
    assert admitted(admission, later, base) == by_resolving(later, base, known)


@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from(LINKS) | st.text("/.x#?:\\ahtp@%é ", max_size=8), max_size=8),
            st.sampled_from(BASES),
            st.sampled_from([1, 2]),
            st.sampled_from([None, "sparql", "sitemap"]),
            st.sampled_from([(), ("trusted",)]),
        ),
        max_size=6,
    )
)
def test_pages_that_are_admitted_together_give_the_items_that_each_gives_alone(pages):
    references = [Reference(links, base, depth, 1, kind, tags) for links, base, depth, kind, tags in pages]
    together, seen = Admission(Settings(), []), {}
    alone = Admission(Settings(), [])
    assert [together.admit(each, seen) for each in references] == [alone.admit(each) for each in references]


@pytest.mark.parametrize("link", ["/x", "http://a.test/x", "../x"])
def test_a_link_that_is_known_by_a_longer_way_is_put_again(link):
    admission = Admission(Settings(), [])
    admission.remember(admission.items(Reference(["/x"], BASES[0], 5, 1)))
    assert admitted(admission, [link], BASES[0], depth=5) == []
    assert admitted(admission, [link], BASES[0], depth=4) == ["http://a.test/x"]


def test_the_endpoint_at_a_known_address_is_no_known_page():
    admission = Admission(Settings(), [])
    admission.remember(admission.items(Reference(["http://a.test/x"], BASES[0], 1, 1, "sparql")))
    assert admitted(admission, ["http://a.test/x", "/x"], BASES[0]) == ["http://a.test/x"]
    admission.remember(admission.items(Reference(["http://a.test/x"], BASES[0], 1, 1)))
    assert admitted(admission, ["http://a.test/x", "sparql http://a.test/x"], BASES[0]) == [
        "http://a.test/d/sparql%20http://a.test/x"
    ]
