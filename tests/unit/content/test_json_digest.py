"""One digest for all JSON texts that say the same, held in memory or not."""

import json
import random
from collections import Counter

import pytest

from tamias.features.archive.canonical import json_digest as json_module
from tamias.features.archive.canonical import text as text_module
from tamias.features.archive.canonical.canonical_json import canonical, value_of
from tamias.features.archive.canonical.json_digest import Regard, json_digest, json_text
from tamias.model.document import Unreadable
from tests.examples import sample
from tests.messages import saying

LONGEST = 1 << 20
NAMES = ["id", "name", "features", "type", "fields", "a", '"{[', "ä\\"]
SCALARS = [0, 1, 2, -1, 1.5, 10.0, 1e30, True, None, "", "x", ']}"', "\\", "ü€", "FeatureCollection", 2**70]


def value(chance, depth=0):
    kind = chance.random()
    if depth > 4 or kind < 0.3:
        return chance.choice(SCALARS)
    if kind < 0.6:
        names = chance.sample(NAMES, chance.randrange(len(NAMES)))
        found = {name: value(chance, depth + 1) for name in names}
        return found | ({"type": "FeatureCollection"} if chance.random() < 0.3 else {})
    if kind < 0.8:
        items = [{"id": number, "v": value(chance, depth + 2)} for number in range(chance.randrange(5))]
        chance.shuffle(items)
        return items
    return [value(chance, depth + 1) for _ in range(chance.randrange(4))]


def reordered(chance, found):
    """With keys, and at times items, in another order."""
    if isinstance(found, dict):
        pairs = [(name, reordered(chance, part)) for name, part in found.items()]
        return dict(chance.sample(pairs, len(pairs)))
    if isinstance(found, list):
        parts = [reordered(chance, part) for part in found]
        return chance.sample(parts, len(parts)) if chance.random() < 0.5 else parts
    return found


def digest(text, regard=Regard.CONTENT, held=LONGEST, longest=LONGEST):
    return json_digest(json_text(text, held, 10 * LONGEST), longest, regard)


def written(chance, found):
    words = {"indent": chance.choice([None, 1]), "ensure_ascii": chance.random() < 0.5}
    return json.dumps(found, **words).encode()


@pytest.mark.parametrize("seed", sample(range(40), 8))
def test_two_texts_have_one_digest_just_when_their_canonical_texts_are_the_same(seed, monkeypatch):
    monkeypatch.setattr(text_module, "CHUNK", 5)
    chance = random.Random(seed)
    outcomes = Counter()
    for _ in range(100):
        first = value(chance)
        second = reordered(chance, first) if chance.random() < 0.9 else value(chance)
        one, other = written(chance, first), written(chance, second)
        same = canonical(value_of(one)) == canonical(value_of(other))
        digests = [digest(text, held=0)[0] for text in (one, other)]
        assert (digests[0] == digests[1]) == same, (one, other)
        assert digest(one)[0] == digests[0], one  # in memory
        outcomes[same] += 1
    assert min(outcomes[True], outcomes[False]) > 5


@pytest.mark.parametrize(
    ("one", "other", "regards"),
    [
        (b'{"a":1,"b":[1.0]}', b' {"a": 1, "b": [ 1 ] }\n', [True, True, True]),
        (b'{"a":1,"b":2}', b'{"b":2,"a":1}', [True, True, False]),
        (b'[{"id":1},{"id":2}]', b'[{"id":2},{"id":1}]', [True, False, False]),
        (b'[{"x":1},{"x":2}]', b'[{"x":2},{"x":1}]', [False, False, False]),
        (b'{"features":[1,2]}', b'{"features":[2,1]}', [False, False, False]),
        (
            b'{"features":[1,2],"type":"FeatureCollection"}',
            b'{"type":"FeatureCollection","features":[2,1]}',
            [True, False, False],
        ),
        (b'{"fields":[{"id":1},{"id":2}]}', b'{"fields":[{"id":2},{"id":1}]}', [False, False, False]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("held", [0, LONGEST])
def test_what_counts_is_told_apart(one, other, regards, held):
    for regard, same in zip(Regard, regards, strict=True):
        digests = [digest(text, regard, held)[0] for text in (one, other)]
        assert (digests[0] == digests[1]) == same, regard


@pytest.mark.parametrize("held", [0, LONGEST])
def test_of_members_of_one_name_the_last_counts(held):
    digests = [digest(text, held=held) for text in (b'{"a":1,"a":2}', b'{"a":2}')]
    assert digests[0] == digests[1]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (b"[1, 2, 3]", 3), (b'{"error": "no"}', 1), (b'{"a": {"b": [1, 2]}, "c": [1]}', 2), (b"{}", 1),
        (b"7", 1),
        (b'{"type": "FeatureCollection", "features": [1, 2, 3]}', 3), (b'{"a": {"b": {"c": [1, 2]}}}', 1),
        (b'{"a": []}', 0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("held", [0, LONGEST])
def test_items_are_counted_near_the_surface(text, count, held):
    assert digest(text, held=held)[1] == count


@pytest.mark.parametrize(
    "text",
    [
        b"", b" ", b"{", b"[1,2", b"[1,,2]", b"[1 2]", b"[1]]", b"[1}", b'{"a"}', b'{"a":}', b"{1:2}",
        b'{"a":1,}',
        b'["a', b'["a\\', b"[1] 2", b"tru", b"[NaN]", b'{"a":[1}', b"[{]}]", b'"\xff"', b"[1,]", b'["a":1]',
    ],
)  # fmt: skip
@pytest.mark.parametrize("held", [0, LONGEST])
def test_what_is_no_json_is_refused(text, held):
    with pytest.raises(Unreadable):
        digest(text, held=held)


@pytest.mark.parametrize(
    "text", [b'["' + b"x" * 2000 + b'"]', b"[[" + b"1," * 2000 + b"1]]", b"[" + b"1" * 2000 + b"]"]
)
@pytest.mark.parametrize("held", [10, LONGEST])
def test_a_value_that_is_longer_than_allowed_is_refused(text, held):
    with pytest.raises(Unreadable, check=saying("1000")):
        digest(text, held=held, longest=1000)
    assert digest(b"[" + b"[1]," * 2000 + b"1]", held=held, longest=1000)[1] == 2001


@pytest.mark.parametrize("step", [1, 2, 3, 7, 1000])
def test_brackets_and_commas_in_strings_do_not_count(step):
    text = rb'{"a\\": ["],[", "\\\"[", {"b": [1, 2]}], "c": 1}'
    brackets = json_module.Brackets()
    chunks = [text[at : at + step] for at in range(0, len(text), step)]
    assert sum(brackets.separators(chunk, 2) for chunk in chunks) == 3
    assert brackets.level == 0


@pytest.mark.parametrize("text", [b"[" + b"1," * 200 + b"1]", b"{" + b'"a":1,' * 100 + b'"a":1}'])
def test_a_long_text_of_too_many_small_values_is_refused(text, monkeypatch):
    monkeypatch.setattr(json_module, "MOST_VALUES", 99)
    with pytest.raises(Unreadable, check=saying("99", "JSON")):
        digest(text, held=0)
    with pytest.raises(Unreadable, check=saying("100", "JSON", part=2)):
        json_text(text, 0, 100)
    assert digest(b"[" + b"1," * 99 + b"1]", held=0)[1] == 100
