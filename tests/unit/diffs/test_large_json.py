"""Large JSON is compared as small JSON is: the same changes at the same paths, without holding it."""

import json
import random
from collections import Counter

import msgspec
import pytest

from tamias.features.archive.canonical import content_digest, json_digest
from tamias.features.archive.canonical.content_digest import Stored, noise_between
from tamias.features.diffs.compare import diff
from tamias.features.diffs.json_paths import json_diff
from tamias.model.diff import DiffKind, DiffLimits
from tamias.model.document import Unreadable
from tests.messages import saying, unsaid

SCALARS = [0, 1, 2, 1.5, 10.0, True, None, "x", ']}"', "ü€\\", "FeatureCollection"]
IDENTIFIERS = ["id", "name", "code", "x"]
LIMITS = DiffLimits(text=40, changes=5)


def plain(chance, depth=0):
    kind = chance.random()
    if depth > 1 or kind < 0.6:
        return chance.choice(SCALARS)
    if kind < 0.8:
        return {name: plain(chance, depth + 1) for name in chance.sample("abcde", 3)}
    return [plain(chance, depth + 1) for _ in range(chance.randrange(4))]


def records(chance):
    name = chance.choice(IDENTIFIERS)
    found = [
        {name: number, "v": plain(chance), "w": plain(chance)} for number in range(chance.randrange(1, 8))
    ]
    if chance.random() < 0.3:
        found += [plain(chance) for _ in range(3)]
    if chance.random() < 0.3:
        found = [{"type": "Feature", "properties": each} for each in found]
    if chance.random() < 0.2:
        found += chance.choices(found, k=2)
    return found


def document(chance):
    kind = chance.random()
    if kind < 0.3:
        return records(chance)
    if kind < 0.7:
        return {"type": "FeatureCollection", "name": plain(chance), "features": records(chance)}
    inner = {"fields": records(chance), "records": records(chance), "a": plain(chance)}
    return {"ok": True, "result": inner, "rows": records(chance), "b": {"c": {"d": records(chance)}}}


def changed(chance, found, rate):
    """Another one: some parts are changed, come or go, or are in another order."""
    if chance.random() < rate:
        return plain(chance)
    if isinstance(found, dict):
        pairs = [
            (name, changed(chance, each, rate)) for name, each in found.items() if chance.random() > rate / 3
        ]
        return dict(chance.sample(pairs, len(pairs)))
    if isinstance(found, list):
        parts = [changed(chance, each, rate) for each in found if chance.random() > rate]
        parts += [plain(chance) for _ in range(3) if chance.random() < rate / 3]
        parts += [changed(chance, each, 0.3) for each in found[:1] if chance.random() < rate]
        return chance.sample(parts, len(parts)) if chance.random() < 0.3 else parts
    return found


def written(chance, path, found):
    words = {"indent": chance.choice([None, 1]), "ensure_ascii": chance.random() < 0.5}
    encoding = chance.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16"])
    path.write_bytes(json.dumps(found, **words).encode(encoding))
    return path


@pytest.mark.parametrize("seed", range(20))
def test_a_large_document_is_compared_as_a_small_one(tmp_path, seed):
    chance = random.Random(seed)
    outcomes = Counter()
    for _ in range(60):
        first = document(chance)
        second = changed(chance, first, chance.choice([0, 0.02, 0.1]))
        old, new = written(chance, tmp_path / "old", first), written(chance, tmp_path / "new", second)
        small = json_diff(old, new, LIMITS)
        found = json_diff(old, new, msgspec.structs.replace(LIMITS, held_bytes=0))
        assert found == small, (first, second)
        if found.is_empty:
            stored = [Stored(source=path, media_type="application/json") for path in (old, new)]
            outcomes["noise" if noise_between(*stored) else "order"] += 1
        outcomes["changed"] += not found.is_empty
    assert min(outcomes["noise"], outcomes["changed"]) > 5


def feature(number, value):
    point = {"type": "Point", "coordinates": [number / 7, -number / 3]}
    return {"type": "Feature", "properties": {"n": number, "v": value}, "geometry": point}


@pytest.mark.parametrize("identified", [True, False])
def test_features_of_more_than_may_be_held_in_another_order_are_noise_and_no_difference(tmp_path, identified):
    features = [feature(number, "a") | ({"id": number} if identified else {}) for number in range(2000)]
    shuffled = random.Random(1).sample(features, len(features))
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    new.write_text(json.dumps({"features": shuffled, "type": "FeatureCollection"}, indent=2))
    stored = [
        Stored(source=path, media_type="application/geo+json", most_bytes=250_000) for path in (old, new)
    ]
    assert all(path.stat().st_size > 250_000 for path in (old, new))
    assert not unsaid(noise_between(*stored).reason)
    assert content_digest.content_digest(stored[0]).items == len(features)
    limits = DiffLimits(held_bytes=250_000)
    assert diff(old, new, "application/geo+json", limits=limits).is_empty
    shuffled[5] = shuffled[5] | {"properties": {"n": 0, "v": "b"}}
    new.write_text(json.dumps({"features": shuffled, "type": "FeatureCollection"}))
    assert noise_between(*stored) is None
    found, small = (diff(old, new, "application/geo+json", limits=each) for each in (limits, DiffLimits()))
    assert (found, found.kind) == (small, DiffKind.JSON)
    assert found.changed == 2 if identified else found.added == found.removed == 1


def test_what_is_beyond_the_limits_is_compared_by_lines_and_a_note_says_so(tmp_path, monkeypatch):
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("[\n" + ",\n".join(map(str, range(1000))) + "\n]")
    new.write_text("[\n" + ",\n".join(map(str, range(1001))) + "\n]")
    limits = DiffLimits(held_bytes=1000)
    assert json_diff(old, new, limits).added == 1
    monkeypatch.setattr(json_digest, "MOST_VALUES", 100)
    found = diff(old, new, "application/json", limits=limits)
    assert (found.kind, found.notes) == (
        DiffKind.LINES, ["not compared as json: more than 100 values of JSON"],
    )  # fmt: skip
    with pytest.raises(Unreadable, check=saying("500", "JSON")):
        json_diff(old, new, msgspec.structs.replace(limits, read_bytes=500))
