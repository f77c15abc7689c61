"""Fingerprints: equal for equal contents in other bytes, and for no others."""

import gzip
import json
import random
import zipfile
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tamias.content.formats import Form
from tamias.features.archive.canonical.content_digest import Stored, content_digest, fingerprint_of
from tests.examples import examples

CSV, TURTLE, JSON = "text/csv", "text/turtle", "application/json"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
SLOW_DISK = settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])

cells = st.text(alphabet='abc "\n,1é', max_size=6)
rows = st.lists(st.lists(cells, min_size=2, max_size=3), min_size=1, max_size=12)

full_cells = st.text(alphabet='abc ",1é', min_size=1, max_size=6)
full_rows = st.lists(st.lists(full_cells, min_size=2, max_size=3), min_size=1, max_size=12)


def csv_text(table, end="\n"):
    return end.join(",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in table)


def fingerprint(path, media_type, **limits):
    """The fingerprint of a file as what its type says; None where it is compared as text, or not at all."""
    found = content_digest(Stored(source=path, media_type=media_type, **limits))
    return None if found is None or found.form is Form.TEXT else fingerprint_of(found)


@pytest.fixture
def of(tmp_path):
    def give(content, media_type, **limits):
        path = tmp_path / "content"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return fingerprint(path, media_type, **limits)

    return give


@SLOW_DISK
@given(table=full_rows, seed=st.integers(0, 99))
def test_rows_in_another_order_are_the_same_table(of, table, seed):
    shuffled = random.Random(seed).sample(table, len(table))
    assert of(csv_text(table), CSV) == of(csv_text(shuffled), CSV)


@SLOW_DISK
@given(table=rows, data=st.data())
def test_one_changed_cell_makes_another_table(of, table, data):
    row = data.draw(st.integers(0, len(table) - 1))
    changed = [list(each) for each in table]
    changed[row][0] += "x"
    assert of(csv_text(table), CSV) != of(csv_text(changed), CSV)


@SLOW_DISK
@given(table=rows, data=st.data())
def test_a_row_said_twice_makes_another_table(of, table, data):
    assert of(csv_text(table), CSV) != of(csv_text([*table, data.draw(st.sampled_from(table))]), CSV)


@pytest.mark.parametrize(
    "other",
    ["a,b\r\n1,2\r\n", "a,b\r1,2\r", "a,b\n1,2", "\ufeffa,b\n1,2\n", "a,b\n1,2\n\n"],
    ids=["CRLF", "CR", "no last line end", "byte order mark", "blank line"],
)
def test_line_ends_and_marks_are_not_content(of, other):
    assert of(other, CSV) == of("a,b\n1,2\n", CSV)


def test_utf16_is_the_same_table(of):
    assert of("a,b\n1,é\n".encode("utf-16"), CSV) == of("a,b\n1,é\n", CSV)


def test_lines_exchanged_between_two_quoted_cells_make_another_table(of):
    assert of('"a\nx"\n"b\ny"\n', CSV) != of('"a\ny"\n"b\nx"\n', CSV)


def test_a_crlf_at_the_end_of_a_chunk_is_one_line_end(of):
    filler = "x" * ((1 << 20) - 1)
    assert of(f"{filler}\r\nb\r\n", CSV) == of(f"{filler}\nb\n", CSV)


def test_a_line_of_any_length_is_read(of):
    assert of(b"x" * (3 << 20), CSV) != of(b"x" * (3 << 20) + b"y", CSV)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


def reordered(value):
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(value)}
    return [reordered(each) for each in value] if isinstance(value, list) else value


@SLOW_DISK
@given(value=json_values)
def test_keys_in_another_order_and_other_spaces_are_the_same_json(of, value):
    assert of(json.dumps(value), JSON) == of(json.dumps(reordered(value), indent=3, ensure_ascii=False), JSON)


@SLOW_DISK
@given(one=json_values, other=json_values)
def test_json_has_the_same_fingerprint_just_when_it_says_the_same(of, one, other):
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (of(json.dumps(one), JSON) == of(json.dumps(other), JSON)) is same


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("1.0", "1", True),
        ("1e2", "100", True),
        ("0.10", "0.1", True),
        ("-0.0", "0", True),
        ("1.5E+50", "15e49", True),
        ("0.1", "0.10000000000000000001", False),
        ("12345678901234567890123.1", "12345678901234567890123.2", False),
        ("9007199254740993", "9007199254740992", False),
        ("1.5", '"1.5"', False),
        ("[1,2]", "[2,1]", False),
        ("null", "[]", False),
    ],
)
def test_numbers_are_compared_by_value_and_exactly(of, one, other, same):
    assert (of(one, JSON) == of(other, JSON)) is same


def test_large_json_is_read_in_parts_with_the_same_result(of):
    records = [{"id": number, "point": [number / 7, 1.0], "name": "é" * 20} for number in range(20_000)]
    value = {"type": "FeatureCollection", "features": records, "none": [], "also": {}}
    assert of(json.dumps(value), JSON) == of(json.dumps(reordered(value), indent=1), "application/geo+json")


def test_json_lines_in_another_order_are_the_same(of):
    lines = ['{"a": 1, "b": 2.0}', '{"a": 2}']
    told = {
        of("\n".join(order), "application/x-ndjson") for order in (lines, ['{"a":2}', '{"b":2,"a":1}', ""])
    }
    assert len(told) == 1
    assert None not in told


TRIPLES = '@prefix : <http://e.org/> . :a :p "1", "2" ; :q [ :r (1 1 1), (1 1 1) ] .'
SAME_TRIPLES = """
PREFIX e: <http://e.org/>
e:a e:q _:x . _:x e:r (1 1 1) .
_:x e:r ( 1 1 1 ) .
e:a e:p "2" , "1" , "1" .
"""


def test_turtle_that_says_the_same_is_the_same(of):
    assert of(TRIPLES, TURTLE) == of(SAME_TRIPLES, TURTLE) is not None


@pytest.mark.parametrize(
    ("old", "new"),
    [('"1"', '"3"'), ("(1 1 1), (1 1 1)", "(1 1 1), (1 1 2)"), (":r", ":s"), ("[ :r", "[ :t 1; :r")],
)
def test_turtle_that_says_something_else_is_not_the_same(of, old, new):
    assert of(TRIPLES, TURTLE) != of(TRIPLES.replace(old, new), TURTLE)


@SLOW_DISK
@given(
    edges=st.lists(
        st.tuples(st.integers(0, 5), st.sampled_from("pq"), st.integers(0, 5)), min_size=1, max_size=9
    ),
    order=st.permutations(range(6)),
    seed=st.integers(0, 99),
)
def test_other_labels_of_blank_nodes_are_the_same_graph(of, edges, order, seed):
    lines = [f"_:n{a} <http://e.org/{p}> _:n{b} ." for a, p, b in edges]
    renamed = [f"_:m{order[a]} <http://e.org/{p}> _:m{order[b]} ." for a, p, b in edges]
    random.Random(seed).shuffle(renamed)
    nt = "application/n-triples"
    assert of("\n".join(lines), nt) == of("\n".join(renamed), nt)


blank_graphs = st.sets(
    st.tuples(st.integers(0, 3), st.sampled_from("pq"), st.integers(0, 3)), min_size=2, max_size=6
)


def isomorphic(one, other):
    return any({(to[a], p, to[b]) for a, p, b in one} == other for to in permutations(range(4)))


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(one=blank_graphs, other=blank_graphs)
def test_graphs_of_blank_nodes_with_one_fingerprint_are_the_same_graph(of, one, other):
    found = [
        of("".join(f"_:n{a} <e:{p}> _:n{b} .\n" for a, p, b in each), "application/n-triples")
        for each in (one, other)
    ]
    if None not in found:
        assert (found[0] == found[1]) is isomorphic(one, other)


def test_rings_of_blank_nodes_that_cannot_be_told_apart_have_no_fingerprint(of):
    def ring(nodes):
        return "".join(f"_:{a} <e:p> _:{b} .\n" for a, b in zip(nodes, nodes[1:] + nodes[0], strict=True))

    nt = "application/n-triples"
    assert of(ring("abc") + ring("def"), nt) is None
    assert of(ring("abcdef"), nt) is None


def test_a_long_list_of_equal_values_is_read(of):
    assert of(f"<e:a> <e:b> ({'1 ' * 20_000}) .", TURTLE) is not None


@pytest.mark.parametrize(
    ("media_type", "content"),
    [
        ("application/n-quads", '<http://e.org/a> <http://e.org/p> "1" .\n'),
        ("application/trig", '{ <http://e.org/a> <http://e.org/p> "1" }'),
        (
            "application/rdf+xml",
            """<!DOCTYPE x [<!ENTITY e "http://e.org/">]>
            <r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e.org/">
            <r:Description r:about="&e;a"><e:p>1</e:p></r:Description></r:RDF>""",
        ),
    ],
)
def test_every_rdf_syntax_has_the_same_fingerprint(of, media_type, content):
    assert of(content, media_type) == of('<http://e.org/a> <http://e.org/p> "1" .', TURTLE)


def test_json_ld_whose_context_is_elsewhere_is_compared_as_json(of):
    ld = "application/ld+json"
    one, other = '{"@context":"https://e.org/c","a":1}', '{"a": 1.0, "@context": "https://e.org/c"}'
    assert of(one, ld) == of(other, ld) is not None


def zipped(path: Path, members: dict[str, str], year: int = 2020) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(zipfile.ZipInfo(name, (year, 1, 1, 0, 0, 0)), text)
    return path


def test_a_zip_packed_later_in_another_order_is_the_same(tmp_path):
    old = zipped(tmp_path / "old", {"a.csv": "1", "b/": "", "b/c.csv": "2"}, 2020)
    new = zipped(tmp_path / "new", {"b/c.csv": "2", "a.csv": "1"}, 2024)
    assert fingerprint(old, "application/zip") == fingerprint(new, "application/zip") is not None


def test_a_zip_with_another_content_or_name_is_not_the_same(tmp_path):
    told = [{"a.csv": "1"}, {"a.csv": "2"}, {"b.csv": "1"}, {}]
    found = {fingerprint(zipped(tmp_path / "z", members), "application/zip") for members in told}
    assert len(found) == len(told)


def test_a_workbook_saved_again_is_the_same(tmp_path):
    old = zipped(tmp_path / "old", {"xl/sheet1.xml": "<a/>", "docProps/core.xml": "2020"})
    new = zipped(tmp_path / "new", {"xl/sheet1.xml": "<a/>", "docProps/core.xml": "2021"})
    assert fingerprint(old, XLSX) == fingerprint(new, XLSX) is not None


def test_a_gzip_packed_later_and_harder_is_the_same(of):
    text = b"some text " * 1000
    one, other = gzip.compress(text, 1, mtime=1), gzip.compress(text, 9, mtime=2)
    assert (
        of(one, "application/gzip")
        == of(other, "application/gzip")
        != of(gzip.compress(b""), "application/gzip")
    )


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaa">' + "".join(
    f'<!ENTITY {chr(98 + level)} "{f"&{chr(97 + level)};" * 20}">' for level in range(12)
)


@pytest.mark.parametrize(
    ("media_type", "content"),
    [
        ("image/png", b"\x89PNG"),
        (JSON, b'{"a": '),
        (JSON, b""),
        (JSON, b"[" * 100_000),
        (JSON, b"[" * 400_000 + b"]" * 400_000),
        (JSON, b'"\\ud800"'),
        (JSON, b"\xff\xfe\x00"),
        (JSON, b"1e99999999999999999999"),
        ("application/x-ndjson", b'{"a":1}\n{'),
        (TURTLE, b"<a> <b>"),
        (TURTLE, b"\x00\xff\xfe"),
        (TURTLE, b"<e:a> <e:b> " + b"<<( <e:a> <e:b> " * 100_000 + b"1" + b")>>" * 100_000 + b"."),
        ("application/rdf+xml", BOMB.encode() + b"]><x>&m;</x>"),
        ("application/rdf+xml", b"<a>" * 200_000 + b"</a>" * 200_000),
        ("application/rdf+xml", b"\x00\x01"),
        ("application/rdf+xml", b'<?xml version="1.0" encoding="no-such"?><a/>'),
        ("application/ld+json", b"[" * 20_000 + b"]" * 20_000),
        ("application/zip", b"PK\x03\x04 not a zip"),
        ("application/zip", b""),
        ("application/gzip", b"\x1f\x8b\x08 broken"),
        ("application/gzip", gzip.compress(b"x" * 1000, mtime=0)[:-9]),
    ],
)
def test_what_is_broken_hostile_or_of_another_type_has_none(of, media_type, content):
    assert of(content, media_type) is None


def test_an_encrypted_zip_has_none(tmp_path):
    path = zipped(tmp_path / "z", {"a.csv": "1"})
    content = bytearray(path.read_bytes())
    entry = content.rindex(b"PK\x01\x02")
    content[entry + 8] |= 1
    path.write_bytes(content)
    assert fingerprint(path, "application/zip") is None


@pytest.mark.parametrize(
    ("media_type", "content"),
    [
        (JSON, b"[" + b"1," * 5000 + b"1]"),
        (TURTLE, b"<e:a> <e:b> <e:c> ." * 300),
        (CSV, b"1,2,3\n" * 5000),
        ("application/x-ndjson", b"[" + b"1," * 5000 + b"1]"),
        ("application/gzip", gzip.compress(b"x" * 50_000, mtime=0)),
    ],
)
def test_what_is_larger_than_the_limit_has_none(of, media_type, content):
    assert of(content, media_type) is not None
    assert of(content, media_type, most_bytes=1000, unpacked_bytes=16_000) is None


def test_a_file_that_is_not_there_is_no_bad_content(tmp_path):
    with pytest.raises(FileNotFoundError):
        fingerprint(tmp_path / "nothing", CSV)
