"""JSON: values at paths, objects of arrays by their identifiers, and counts that fit."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tamias.model.diff import Change, DiffKind, What
from tests.examples import examples

JSON = "application/json"


def test_values_are_told_by_their_paths(compared):
    old = {"title": "a", "count": 1, "tags": ["x"], "by": {"full name": "n"}}
    new = {"title": "b", "count": 1.0, "licence": None, "by": {"full name": "m"}, "tags": ["x"]}
    found = compared(json.dumps(old), json.dumps(new, indent=2), JSON)
    assert found.kind is DiffKind.JSON
    assert found.changes == [
        Change(What.CHANGED, "$.title", "a", "b"),
        Change(What.CHANGED, "$.by['full name']", "n", "m"),
        Change(What.ADDED, "$.licence", None, None),
    ]


def test_objects_of_an_array_are_matched_by_their_identifier(compared):
    old = [{"id": n, "v": n} for n in range(5)]
    new = [{"id": 9, "v": 0}, *({"v": n, "id": n} for n in (4, 3, 1, 0))]
    new[1]["v"] = "four"
    found = compared(json.dumps(old), json.dumps(new), JSON)
    assert found.changes == [
        Change(What.REMOVED, "$[?@.id==2]", {"id": 2, "v": 2}, None),
        Change(What.CHANGED, "$[?@.id==4].v", 4, "four"),
        Change(What.ADDED, "$[?@.id==9]", None, {"id": 9, "v": 0}),
    ]


def test_features_are_matched_by_an_identifier_among_their_properties(compared):
    def collection(*numbers):
        features = [{"type": "Feature", "properties": {"id": f"n{n}"}, "geometry": [n, 1.0]} for n in numbers]
        return json.dumps({"type": "FeatureCollection", "features": features})

    found = compared(collection(1, 2, 3), collection(3, 1), "application/geo+json")
    assert [(change.what, change.where) for change in found.changes] == [
        (What.REMOVED, '$.features[?@.properties.id=="n2"]')
    ]


def test_other_arrays_are_matched_by_their_order(compared):
    found = compared("[1, 2, 3, 4, 5]", "[0, 1, 2, 4, 6]", JSON)
    assert found.changes == [
        Change(What.ADDED, "$[0]", None, 0),
        Change(What.REMOVED, "$[2]", 3, None),
        Change(What.CHANGED, "$[4]", 5, 6),
    ]


def test_true_is_not_one(compared):
    assert compared('{"a": true}', '{"a": 1}', JSON).changed == 1


def test_json_lines_are_compared_as_an_array(compared):
    found = compared('{"id":1}\n{"id":2,"a":1}\n', '{"id":2,"a":2}\n\n{"id":3}', "application/x-ndjson")
    assert (found.added, found.removed, found.changed) == (1, 1, 1)


def test_many_records_are_counted_exactly(compared, stopwatch):
    records = [{"id": n, "name": f"thing {n}", "place": {"lon": n / 7, "lat": n / 3}} for n in range(100_000)]
    old = json.dumps({"records": records})
    changed = [{**each, "name": "x"} if each["id"] % 50 == 0 else each for each in records[500:]]
    new = json.dumps({"records": [*changed, *({"id": -n} for n in range(1, 301))]})
    with stopwatch(f"{len(old) / 1e6:.1f} MB of JSON"):
        found = compared(old, new, JSON)
    assert (found.added, found.removed, found.changed) == (300, 500, 1_990)
    assert found.truncated


def test_a_long_value_is_cut(compared):
    found = compared('{"a": 1}', json.dumps({"a": "é" * 5000}, ensure_ascii=False), JSON)
    assert found.changes[0].new == '"' + "é" * 499 + "…"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(alphabet="ab'\\\n", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["id", "a", "b'", "c d"]), inner, max_size=4)
    ),
    max_leaves=15,
)


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(old=json_values, new=json_values)
def test_there_is_a_difference_just_when_the_values_differ(compared, old, new):
    found = compared(json.dumps(old), json.dumps(new, indent=1), JSON)
    assert found.kind is DiffKind.JSON
    has_keyed_order = '"id"' in json.dumps([old, new])  # objects with identifiers may stand in any order
    if json.dumps(old, sort_keys=True) == json.dumps(new, sort_keys=True):
        assert found.is_empty
    elif not has_keyed_order:
        assert not found.is_empty


@pytest.mark.parametrize("broken", ["{", "[1,", '{"a":}', "", "\x00", "[" * 5000, '"\\ud800"'])
def test_what_is_not_json_is_compared_as_lines_or_bytes(compared, broken):
    found = compared('{"a": 1}', broken, JSON)
    assert found.kind in {DiffKind.LINES, DiffKind.BYTES}
    assert found.notes[0].startswith("not compared as json: ")
