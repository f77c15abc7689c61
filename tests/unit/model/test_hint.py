"""What a sitemap may say of an address."""

import pytest

from tamias.model.site import speaks_for


@pytest.mark.parametrize(
    ("sitemap", "url", "speaks"),
    [
        ("http://a.example/sitemap.xml", "http://a.example/b/c", True),
        ("http://a.example/b/sitemap.xml", "http://a.example/b/c", True),
        ("http://a.example/b/sitemap.xml", "http://a.example/c", False),
        ("http://a.example/b/sitemap.xml", "http://a.example/bc", False),
        ("http://a.example/sitemap.xml", "https://a.example/b", False),
        ("http://a.example/sitemap.xml", "http://a.example:81/b", False),
        ("http://a.example/sitemap.xml", "http://a.example.evil.example/b", False),
        ("http://a.example/sitemap.xml", "http://b.example/", False),
        ("http://a.example/map?file=/deep/x.xml", "http://a.example/b", True),
        ("http://a.example/", "http://a.example/b", True),
    ],
)
def test_a_sitemap_speaks_for_its_folder(sitemap, url, speaks):
    assert speaks_for(sitemap, url) is speaks
