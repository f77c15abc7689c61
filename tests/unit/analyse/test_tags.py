"""Tags from addresses and content, and the numbers by which pages are alike."""

import random

import pytest

from tamias.analyse.tags.content import (
    NEAR,
    LanguageTagger,
    MarkupTagger,
    TagRules,
    TypeTagger,
    distance,
    page_hash,
    quarters,
    simhash,
)
from tamias.model.document import Page
from tamias.model.errors import ConfigError


def page(body=b"", media_type="text/html", **headers):
    told = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Page(url="http://a.example/", media_type=media_type, headers=told, body=body)


@pytest.mark.parametrize(
    ("fetched", "tags"),
    [
        (page(b"<!doctype html><html lang=de-AT>"), ["lang=de"]),
        (page(b"<HTML class='x' XML:LANG=\"FR\">"), ["lang=fr"]),
        (page(b"<html><p lang='en'>"), []),
        (page(b"<html>", content_language="pt-BR, en"), ["lang=pt"]),
        (page(b"<html lang='de'>", "text/plain"), []),
        (page(b"", content_language="!"), []),
    ],
)
def test_the_language_is_what_the_page_or_its_server_says(fetched, tags):
    assert list(LanguageTagger().tags(fetched)) == tags


@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        (b'<script type="application/ld+json">{}</script>', ["has=json-ld"]),
        (b"<div itemscope itemtype=x>", ["has=microdata"]),
        (b"<p class=x property='name'>", ["has=rdfa"]),
        (b'<div class="post h-entry">', ["has=microformats"]),
        (b"<p>itemscope and property= in the text, h-entry too</p>", []),
    ],
)
def test_structured_data_is_seen_by_its_signs(body, kinds):
    assert list(MarkupTagger().tags(page(body))) == kinds


def test_the_media_type_is_a_tag_where_it_is_known():
    assert list(TypeTagger().tags(page(media_type="text/csv"))) == ["type=text/csv"]
    assert list(TypeTagger().tags(page(media_type=None))) == []


def test_a_rule_gives_its_tag_once_and_keeps_the_others():
    rules = TagRules([r"\.csv$ table", r"^http://a\. table", r"zip packed"])
    assert rules.added("http://a.example/1.csv", ("seed", "table")) == ("seed", "table")
    assert rules.added("http://a.example/1.csv", ()) == ("table",)


@pytest.mark.parametrize("rule", ["", "tag", "( tag"])
def test_what_is_no_rule_is_told(rule):
    with pytest.raises(ConfigError, match=r"tags\.rules"):
        TagRules([rule])


def test_pages_that_differ_in_few_words_of_many_are_near_and_others_are_far():
    chance = random.Random(5)
    near, far = [], []
    for _ in range(50):
        words = [f"w{chance.randrange(5000)}" for _ in range(1000)]
        changed = [*words[:-1], "other"]
        near.append(distance(simhash(words), simhash(changed)))
        far.append(distance(simhash(words), simhash([f"v{chance.randrange(5000)}" for _ in range(1000)])))
    assert sum(each <= NEAR for each in near) >= 48
    assert min(far) > NEAR


def test_numbers_that_are_near_share_a_quarter():
    chance = random.Random(6)
    for _ in range(200):
        number = chance.getrandbits(64) - 2**63
        other = number
        for bit in chance.sample(range(63), NEAR):
            other ^= 1 << bit
        assert set(quarters(number)) & set(quarters(other))


def test_markup_and_scripts_do_not_count_and_short_pages_have_no_number():
    words = " ".join(f"word{n}" for n in range(50))
    plain = page_hash(words.encode())
    assert page_hash(f"<body><script>var x=1</script><p>{words}</p></body>".encode()) == plain
    assert page_hash(b"<p>only a few words</p>") is None
