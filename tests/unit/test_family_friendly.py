"""The example of a tagger: what a publisher says counts, then the share of listed words."""

import importlib.util
from pathlib import Path

import pytest

from tamias.model.document import Page

FILE = Path(__file__).resolve().parents[2] / "examples/plugins/family-friendly/family_friendly.py"


@pytest.fixture
def tags(monkeypatch):
    spec = importlib.util.spec_from_file_location("family_friendly", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "word_list", lambda: frozenset({"acorns"}))

    def found(text, media_type="text/html"):
        page = Page(url="http://example.org/", media_type=media_type, body=text.encode())
        return list(module.FamilyFriendlyTagger().tags(page))

    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("word " * 100, ["FamilyFriendly"]),
        ("word " * 98 + "acorns Acorns", ["adult"]),
        ("word " * 99 + "acorns", ["FamilyFriendly"]),
        ("word " * 100 + "<script>acorns acorns acorns</script>", ["FamilyFriendly"]),
        ("a few words", []),
        ('<meta name="rating" content="adult">', ["adult"]),
        ("<meta content='RTA-5042-1996-1400-1577-RTA' name=rating>", ["adult"]),
        ('{"@type": "Movie", "isFamilyFriendly": false}', ["adult"]),
        ('<meta itemprop="isFamilyFriendly" content="False">', ["adult"]),
        ('{"isFamilyFriendly": true} ' + "word " * 30, ["FamilyFriendly"]),
    ],
)
def test_a_page_is_tagged_by_its_label_and_by_its_words(tags, text, expected):
    assert tags(text) == expected


def test_only_texts_are_tagged(tags):
    assert tags("acorns " * 100, "image/png") == []
