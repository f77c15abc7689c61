"""Linksets, as JSON and as text, and API catalogues."""

import io
import json

import pytest

from tamias.analyse.links.discovery import LinksetAnalyser
from tamias.model.document import Document
from tamias.model.finding import Links, Problem
from tamias.settings import AnalyseSettings

URL = "https://a.example/.well-known/api-catalog"
CATALOGUE = {
    "linkset": [
        {
            "anchor": URL,
            "item": [{"href": "/apis/one", "title": "1"}, {"href": "/apis/two"}],
            "api-catalog": [{"href": "https://b.example/.well-known/api-catalog"}],
        },
        {
            "anchor": "/apis/one",
            "service-desc": [{"href": "/apis/one.yaml", "type": "application/yaml"}],
            "service-doc": [{"href": "/apis/one.html", "type": "text/html"}],
            "describedby": [{"href": "/apis/one.ttl"}],
            "canonical": [{"href": "/apis/first"}],
        },
    ]
}


def findings(data, media_type="application/linkset+json", **limits):
    document = Document(url=URL, stream=io.BytesIO(data), media_type=media_type)
    return list(LinksetAnalyser(AnalyseSettings(**limits)).analyse(document))


def test_the_items_of_an_api_catalogue_are_links():
    assert findings(json.dumps(CATALOGUE).encode()) == [
        Links(
            [
                *("/apis/one", "/apis/two", "https://b.example/.well-known/api-catalog"),
                *("/apis/one.yaml", "/apis/one.ttl"),
            ],
            URL,
        )
    ]


def test_a_linkset_as_text_may_have_many_lines():
    text = b'<https://a.example/1>\n ; rel="item" ; anchor="https://a.example/"\n,\n<2>; rel="item"\n'
    assert findings(text, "application/linkset") == [Links(["https://a.example/1", "2"], URL)]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"linkset": 3}',
        b'{"linkset": [3]}',
        b'{"linkset"',
        b'{"linkset":' + b"[" * 100_000,
        b'{"linkset": [{"a": ' + b"[" * 100_000,
        b"\xff",
    ],
)
def test_what_is_no_linkset_is_a_problem(data):
    [problem] = findings(data)
    assert isinstance(problem, Problem)


@pytest.mark.parametrize(
    "data",
    [b'{"linkset": []}', b'{"linkset": [{"item": 3, "next": [4, {"href": 5}]}]}', b'{"linkset": [{}]}'],
)
def test_odd_links_are_passed_over(data):
    assert findings(data) == []


def test_a_linkset_that_is_too_large_is_not_read():
    [problem] = findings(json.dumps(CATALOGUE).encode(), jsonld_bytes=100)
    assert "analyse.jsonld_bytes" in problem.what
