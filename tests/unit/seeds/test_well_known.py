"""Which places of a host are tried, and what proves that something stands there."""

import pytest

from tamias.seeds.well_known import stands_there, well_known_urls

PAGE = b"<!doctype html><html><body><a href='/sitemap.xml'>urlset data.json linkset void"


def test_the_places_are_those_of_the_origin():
    assert [
        place.url for place in well_known_urls("https://x.example:8443/deep/page?q", has_sitemaps=False)
    ] == [
        "https://x.example:8443/sitemap.xml",
        "https://x.example:8443/.well-known/void",
        "https://x.example:8443/data.json",
        "https://x.example:8443/.well-known/api-catalog",
        "https://x.example:8443/.well-known/tdmrep.json",
        "https://x.example:8443/ai.txt",
    ]


def test_no_sitemap_is_guessed_where_robots_txt_told_of_one():
    assert "sitemap" not in {place.kind for place in well_known_urls("https://x.example", has_sitemaps=True)}


def test_a_host_is_never_asked_more_than_six_times():
    assert len(well_known_urls("https://x.example", has_sitemaps=False)) <= 6


@pytest.mark.parametrize("place", well_known_urls("https://x.example", has_sitemaps=False))
def test_a_page_for_everything_is_no_proof(place):
    assert not stands_there(place.url, "text/html", PAGE)


@pytest.mark.parametrize(
    ("path", "media_type", "head"),
    [
        ("/sitemap.xml", "application/xml", b'<?xml version="1.0"?><urlset xmlns="http://x">'),
        ("/sitemap.xml", "application/xml", b"<sm:sitemapindex >"),
        ("/sitemap.xml", "application/gzip", b"\x1f\x8b\x08"),
        ("/.well-known/void", "text/turtle", b"@prefix void: <http://rdfs.org/ns/void#> ."),
        (
            "/data.json",
            "application/json",
            b'\xef\xbb\xbf{"conformsTo": "https://project-open-data.cio.gov/v1.1"',
        ),
        ("/data.json", "application/ld+json", b'{"@type": "dcat:Catalog"'),
        ("/data.json", "application/json", b'{"dataset": [ {"title": "a"'),
        ("/.well-known/api-catalog", "application/linkset+json", b'{"linkset": [{'),
        ("/.well-known/api-catalog", "application/linkset", b"<a>; rel=item"),
        ("/.well-known/tdmrep.json", "application/json", b'[{"location": "/", "tdm-reservation": 1}]'),
        ("/ai.txt", "text/plain", b"User-Agent: *\nDisallow: /\n"),
    ],
)
def test_what_is_looked_for_is_recognised(path, media_type, head):
    assert stands_there(f"https://x.example{path}", media_type, head)


@pytest.mark.parametrize(
    ("path", "media_type", "head"),
    [
        ("/sitemap.xml", "text/plain", b"not here"),
        ("/.well-known/void", "text/turtle", b"<a> <b> <c> ."),
        ("/data.json", "application/json", b'{"error": "no such page", "dataset": null}'),
        ("/.well-known/api-catalog", "application/json", b'{"linkset": 3}'),
        ("/.well-known/tdmrep.json", "application/json", b"[]"),
        ("/ai.txt", "text/plain", b"Not found"),
        ("/ai.txt", "text/html", b"<html>\nDisallow: /\n"),
        ("/elsewhere", "application/json", b'{"linkset": []}'),
        ("/data.json", None, b""),
    ],
)
def test_what_is_not_looked_for_is_no_proof(path, media_type, head):
    assert not stands_there(f"https://x.example{path}", media_type, head)
