"""ResourceSync is sitemap-shaped: digests become hints, capabilities become sitemaps."""

import pytest

from tamias.model.site import Hint

DIGEST = "854f61290e2e197a11bc91063afce22e43f8ccc655237050ace766adc68dc784"
ROOT = (
    '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    ' xmlns:rs="http://www.openarchives.org/rs/terms/">'
)


def test_a_resource_list_gives_digests(read):
    found = read(
        f'{ROOT}<rs:md capability="resourcelist" at="2013-01-03T09:00:00Z"/><url><loc>http://a.example/res</loc>'
        f'<rs:md hash="md5:1584abdf8ebdc9802ac0 sha-256:{DIGEST.upper()}" length="8"/></url></urlset>'
    )
    assert found.pages == ["http://a.example/res"]
    assert found.hints == [Hint(url="http://a.example/res", sha256=DIGEST)]


def test_a_list_of_capabilities_leads_to_sitemaps(read):
    found = read(
        f'{ROOT}<rs:ln rel="up" href="/.well-known/resourcesync"/><rs:md capability="capabilitylist"/>'
        '<url><loc>http://a.example/changes.xml</loc><rs:md capability="changelist"/></url></urlset>'
    )
    assert found.pages == []
    assert found.sitemaps == ["http://a.example/.well-known/resourcesync", "http://a.example/changes.xml"]


@pytest.mark.parametrize(("change", "pages"), [("updated", ["http://a.example/r"]), ("deleted", [])])
def test_a_change_is_a_hint_and_what_was_deleted_is_no_new_link(read, change, pages):
    found = read(
        f'{ROOT}<url><loc>http://a.example/r</loc><rs:md change="{change}" datetime="1970-01-02T00:00:00Z"/>'
        "</url></urlset>"
    )
    assert found.pages == pages
    assert found.hints == [Hint(url="http://a.example/r", lastmod_ms=86_400_000)]


def test_the_description_of_a_resource_is_a_link(read):
    found = read(
        f'{ROOT}<url><loc>/r</loc><rs:ln rel="describedby" href="/r.ttl"/><rs:ln rel="duplicate" href="/m"/>'
        "</url></urlset>"
    )
    assert found.pages == ["http://a.example/r", "http://a.example/r.ttl"]
