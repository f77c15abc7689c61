"""The public suite of microformats: its JSON as quads is what we read from its pages."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from pyoxigraph import CanonicalizationAlgorithm, Dataset

from tamias.analyse.markup.page import MarkupPage, extracted
from tamias.features.microformats.quads import MF, quads
from tamias.model.finding import Quads

pytestmark = pytest.mark.suite("microformats-tests")

SCORES = Path(__file__).parent / "scores.toml"

DIFFERENT = {
    # By its own words what the specification implies and no implementation does.
    "microformats-v2-unit/nested/nested-microformat-mistyped",
    # Wants the colon kept in a time zone, which microformats-v1/hcalendar/time wants left out.
    "microformats-v2-unit/value/value-dt",
}


@pytest.fixture(scope="module")
def documents(suites):
    folder = suites("microformats-tests") / "tests"
    found = sorted(folder.rglob("*.json"))
    return [(path.relative_to(folder).with_suffix("").as_posix(), path) for path in found]


def url(name):
    """Where the suite takes its pages to be from."""
    return "http://example.test" if "-unit/" in name else "http://example.com/"


def base(data, name):
    found = re.search(rb'<base href="([^"]+)"', data)
    return found[1].decode() if found else url(name)


def canonical(statements):
    dataset = Dataset(statements)
    dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return dataset


def is_ours(quad):
    return quad.predicate.value.startswith(MF) or getattr(quad.object, "value", "").startswith(MF)


def read(name, path):
    """Through all that is done to a page, so that the gate counts too."""
    data = path.with_suffix(".html").read_bytes()
    page = MarkupPage(data, url=url(name), base=base(data, name), media_type="text/html")
    return [
        quad for found in extracted(page) if isinstance(found, Quads) for quad in found.quads if is_ours(quad)
    ]


def test_the_suite_is_seen_whole(documents):
    assert len(documents) == 140


def test_pages_say_what_the_suite_says_they_do(documents):
    different = {
        name
        for name, path in documents
        if canonical(read(name, path)) != canonical(quads(json.loads(path.read_text()), url(name)))
    }
    assert different == DIFFERENT


def test_the_recorded_score_is_the_true_one(documents):
    recorded = tomllib.loads(SCORES.read_text())["microformats"]
    assert recorded == {"passed": len(documents) - len(DIFFERENT), "of": len(documents)}
