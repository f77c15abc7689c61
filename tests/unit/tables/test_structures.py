"""JSON, JSON lines, GeoJSON and XML: what they are made of."""

import pytest

from tamias.features.tables.files.json_shape import Items
from tests.messages import unnamed, unsaid

FEATURES = ",".join(
    f'{{"type": "Feature", "geometry": {{"type": "Point", "coordinates": [{n}.5, 47.25]}},'
    f' "properties": {{"name": "[{{{n}"}}}}'
    for n in range(20)
)


@pytest.fixture
def json(profiled):
    return lambda text, **limits: profiled(text, "data.json", "application/json", **limits)


def paths(structure):
    return {path.path: path.types for path in structure.paths}


def test_the_places_of_json_are_counted_by_type(json):
    found = json('[{"a": 1, "b": [true, null]}, {"a": "x", "c d": {"e": 1.5}}]').structure
    assert paths(found) == {
        "$": {"array": 1},
        "$[]": {"object": 2},
        "$[].a": {"integer": 1, "string": 1},
        "$[].b": {"array": 1},
        "$[].b[]": {"boolean": 1, "null": 1},
        '$[]["c d"]': {"object": 1},
        '$[]["c d"].e': {"number": 1},
    }


def test_an_outermost_array_has_items(json):
    assert json("[1, 2, 3]").structure.items == 3


def test_a_large_array_is_read_item_by_item(json):
    found = json("[" + ",".join('{"a": "x\\"]}", "b": [{}]}' for _ in range(100)) + "]", item=500).structure
    assert (found.items, paths(found)["$[].a"], found.complete) == (100, {"string": 100}, True)


def test_lines_of_json_are_items(json):
    found = json('{"a": 1}\n{"a": 2}\n\n{"a": "}"}\n').structure
    assert (found.syntax, found.items, paths(found)["$.a"]) == ("json-lines", 3, {"integer": 2, "string": 1})


def test_many_lines_of_json_are_read_one_by_one(json):
    found = json('{"a": 1}\n' * 200, item=100).structure
    assert (found.syntax, found.items) == ("json-lines", 200)


def test_a_bad_line_is_told_and_the_rest_counts(json):
    found = json('{"a": 1}\n{"a": oops}\n{"a": 3}\n')
    assert (found.structure.items, len(found.problems)) == (2, 1)
    assert not unsaid(found.problems[0], "1", "JSON")


def test_the_array_inside_a_large_object_is_read_item_by_item(json):
    rows = ",".join(f'{{"a": {n}}}' for n in range(100))
    found = json(f'{{"meta": {{"x": {{"y": 1}}}}, "rows": [{rows}]}}', item=500).structure
    assert paths(found)["$..rows[].a"] == {"integer": 100}


def test_more_places_than_the_limit_are_not_told(json):
    found = json("{" + ",".join(f'"k{n}": {n}' for n in range(50)) + "}", paths=10).structure
    assert (len(found.paths), found.complete) == (10, False)


def test_json_that_is_none_is_a_problem(json):
    found = json("[1, 2")
    assert (found.structure, found.problems[0][:13]) == (None, "no valid JSON")


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 200_000])
def test_json_nested_too_deep_is_a_problem(json, text):
    [problem] = json(text).problems
    assert unnamed(problem, "JSON", "nested") == []


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_items_do_not_depend_on_where_the_stream_is_cut(size):
    text = rb'[{"a": "\\\"]}"}, [1, "\\"], {"b": {"c": "["}}]'
    chunks = [text[place : place + size] for place in range(0, len(text), size)]
    assert list(Items(1, 1000).cut(chunks)) == [rb'{"a": "\\\"]}"}', rb'[1, "\\"]', b'{"b": {"c": "["}}']


@pytest.mark.parametrize("item", [1 << 20, 300])
def test_what_geojson_maps_is_told(profiled, item):
    text = f'{{"type": "FeatureCollection", "features": [{FEATURES}]}}'
    found = profiled(text, "map.geojson", "application/geo+json", item=item).geography
    assert (found.features, found.geometries, found.bbox, found.properties) == (
        20, {"Point": 20}, (0.5, 47.25, 19.5, 47.25), ("name",),
    )  # fmt: skip


def test_another_coordinate_system_is_told(json):
    crs = '{"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::31256"}}'
    text = f'{{"type": "FeatureCollection", "crs": {crs}, "features": [{FEATURES}]}}'
    assert json(text).geography.crs == "urn:ogc:def:crs:EPSG::31256"


def test_polygons_and_collections_are_measured(json):
    text = (
        '{"type": "Feature", "properties": null, "geometry": {"type": "GeometryCollection", "geometries": ['
        '{"type": "Polygon", "coordinates": [[[0, 0], [4, 0, 99], [4, 3], [0, 0]]]}]}}'
    )
    assert json(text).geography.bbox == (0, 0, 4, 3)


def test_ordinary_json_maps_nothing(json):
    assert json('{"type": "Feature"}').geography is None


@pytest.fixture
def xml(profiled):
    return lambda text, **limits: profiled(text, "data.xml", "application/xml", **limits)


def test_the_paths_of_xml_are_counted(xml):
    found = xml('<r xmlns="http://x/y"><a id="1">t</a><a id="2"/><b><a/></b></r>').structure
    assert (found.items, found.depth, found.namespaces) == (5, 3, ("http://x/y",))
    assert paths(found) == {
        "/r": {"element": 1},
        "/r/a": {"element": 2, "text": 1},
        "/r/a/@id": {"attribute": 2},
        "/r/b": {"element": 1},
        "/r/b/a": {"element": 1},
    }


def test_xml_that_ends_early_counts_up_to_there(xml):
    found = xml("<r><a/><a/><b>")
    assert (found.structure.items, found.structure.complete, len(found.problems)) == (4, False, 1)


@pytest.mark.parametrize(
    "text",
    [
        "<!DOCTYPE a [<!ENTITY a 'aaaaaaaaaa'>"
        + "".join(f"<!ENTITY a{n} '{f'&a{n - 1 if n else str()};' * 10}'>" for n in range(9))
        + "]><a>&a8;</a>",
        "<a>" * 100_000,
    ],
)
def test_xml_that_would_cost_too_much_is_told(xml, text):
    assert len(xml(text).problems) == 1


def test_an_external_entity_is_not_opened(xml, tmp_path):
    (tmp_path / "secret").write_text("x" * 10)
    found = xml(f"<!DOCTYPE a [<!ENTITY s SYSTEM 'file://{tmp_path}/secret'>]><a>&s;</a>").structure
    assert paths(found) == {"/a": {"element": 1}}


def test_more_paths_than_the_limit_are_not_told(xml):
    found = xml("<r>" + "".join(f"<e{n}/>" for n in range(50)) + "</r>", paths=10).structure
    assert (len(found.paths), found.items, found.complete) == (10, 51, False)


def test_plain_text_has_lines(profiled):
    found = profiled("one\ntwo\nthree", "notes.txt", "text/plain")
    assert (found.lines, found.encoding, found.tables) == (3, "utf-8", ())
