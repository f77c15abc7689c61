"""Reads a sitemap from bytes, and sorts what was found."""

import io
from types import SimpleNamespace

import pytest

from tamias.analyse.sitemaps.urlset import SitemapAnalyser
from tamias.model.document import Document
from tamias.model.finding import Links, Problem
from tamias.model.site import Hints, SemanticDatasets
from tamias.settings import AnalyseSettings

XML = "application/x-sitemap+xml"


def read_sitemap(data, *, url="http://a.example/sitemap.xml", media_type=XML, charset=None, **limits):
    """The findings of a sitemap by kind, each in the order it came."""
    stream = data if hasattr(data, "read") else io.BytesIO(data.encode() if isinstance(data, str) else data)
    document = Document(url=url, stream=stream, media_type=media_type, charset=charset)
    found = SimpleNamespace(pages=[], sitemaps=[], hints=[], beyond=[], datasets=[], problems=[], batches=0)
    for finding in SitemapAnalyser(AnalyseSettings(**limits)).analyse(document):
        found.batches += 1
        if isinstance(finding, Links):
            assert finding.base == url
            {None: found.pages, "sitemap": found.sitemaps}[finding.kind].extend(finding.references)
        elif isinstance(finding, Hints):
            found.hints += finding.hints
            found.beyond += finding.beyond
        elif isinstance(finding, SemanticDatasets):
            found.datasets += finding.datasets
        else:
            assert isinstance(finding, Problem)
            found.problems.append(finding)
    return found


@pytest.fixture(scope="session")
def read():
    """Calls `read_sitemap`."""
    return read_sitemap
