import tracemalloc

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, parse, serialize

from tamias.features.exports import parquet
from tamias.features.exports.parquet import CAPTURES, QUADS, export_parquet, quad_rows
from tamias.model.capture import CaptureRecord, Hop, Outcome
from tamias.sinks.graphs import NoQuad

GRAPH = "http://e/g"
XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"


def attempt(number, **more):
    return CaptureRecord(
        **{
            "id": str(number),
            "crawl": 1,
            "crawl_name": "default",
            "url": f"http://e/{number}",
            "final_url": f"http://e/{number}",
            "started_at": 1_700_000_000_123,
            "ended_at": 1_700_000_000_456,
            "outcome": Outcome.OK,
            "reason": "",
            "depth": 0,
            "worker": "w",
            "agent": "a",
            **more,
        }
    )


def rows(folder, name, columns="*"):
    return duckdb.sql(f"SELECT {columns} FROM '{folder}/{name}.parquet'").fetchall()


def row_of(text):
    (row,) = quad_rows([f"<http://e/s> <http://e/p> {text} <{GRAPH}> .\n".encode()])
    return dict(zip(QUADS, row, strict=True))


class TestQuads:
    @pytest.mark.parametrize(
        ("text", "wanted"),
        [
            ("<http://e/o>", {"object": "http://e/o", "object_kind": "iri", "datatype": None}),
            ("_:b1", {"object": "b1", "object_kind": "blank", "datatype": None}),
            ('"a"', {"object": "a", "object_kind": "literal", "datatype": XSD + "string"}),
            ('"1"^^<http://e/t>', {"object": "1", "datatype": "http://e/t", "language": None}),
            ('"a"@en-GB', {"language": "en-GB", "datatype": RDF + "langString", "direction": None}),
            ('"a"@ar--rtl', {"language": "ar", "datatype": RDF + "dirLangString", "direction": "rtl"}),
            ('""', {"object": "", "object_kind": "literal"}),
            ('"<x> .\\n _:b @en"', {"object": "<x> .\n _:b @en"}),
            ('"\\\\n \\u00e9 \\U0001F600 \\t\\""', {"object": '\\n é 😀 \t"'}),
            ("<<( <http://e/a> <http://e/b> _:c )>>", {"object_kind": "triple"}),
        ],
    )
    def test_every_kind_of_object_has_its_columns(self, text, wanted):
        row = row_of(text)
        assert {name: row[name] for name in wanted} == wanted

    def test_a_subject_may_be_a_blank_node(self):
        (row,) = quad_rows([b"_:s <http://e/p> _:o <http://e/g> .\n"])
        assert row[:2] == ("s", "blank")

    @given(st.text(st.characters(blacklist_categories=["Cs"])))
    def test_every_literal_is_read_as_it_was(self, text):
        quad = Quad(NamedNode("http://e/s"), NamedNode("http://e/p"), Literal(text), NamedNode(GRAPH))
        (row,) = quad_rows([serialize([quad], format=RdfFormat.N_QUADS)])
        assert row[3] == text

    def test_a_line_that_is_no_quad_is_told(self):
        with pytest.raises(NoQuad, match="nonsense"):
            list(quad_rows([b"<http://e/s> <http://e/p> _:o <http://e/g> .\nnonsense\n"]))


class TestFiles:
    def test_the_table_holds_the_quads_of_the_export(self, tmp_path):
        nquads = b"".join(
            b'<http://e/%d> <http://e/p> "%d" <http://e/g%d> .\n_:b%d <http://e/p> _:c <http://e/g> .\n'
            % (n, n, n % 3, n)
            for n in range(1000)
        )
        assert export_parquet([nquads[:777], nquads[777:]], [], tmp_path) == (2000, 0)
        assert {rebuilt(row) for row in rows(tmp_path, "quads")} == set(
            parse(nquads, format=RdfFormat.N_QUADS)
        )

    def test_the_columns_are_those_that_are_documented(self, tmp_path):
        export_parquet([], [], tmp_path)
        for name, columns in (("quads", QUADS), ("captures", CAPTURES)):
            told = duckdb.sql(f"DESCRIBE SELECT * FROM '{tmp_path}/{name}.parquet'").fetchall()
            assert [row[0] for row in told] == list(columns)

    def test_an_attempt_is_read_back(self, tmp_path):
        hops = (Hop(url="http://e/1", status=301, address="192.0.2.1", location="http://e/2"),)
        record = attempt(1, hops=hops, status=301, problems=("bad",), bytes=2**40, sha256="ab")
        export_parquet([], [record], tmp_path)
        (row,) = rows(
            tmp_path, "captures", "outcome, status, address, problems, hops, bytes, epoch_ms(started_at)"
        )
        hop = {"url": "http://e/1", "status": 301, "address": "192.0.2.1", "location": "http://e/2"}
        assert row == ("ok", 301, "192.0.2.1", ["bad"], [hop], 2**40, 1_700_000_000_123)

    def test_a_value_that_comes_late_is_kept(self, tmp_path):
        hops = (Hop(url="http://e/1", status=301, address="", location="http://e/2"),)
        late = attempt(5000, status=599, bytes=2**40, problems=("late",), hops=hops, declared_type="x")
        export_parquet([], [*(attempt(n) for n in range(5000)), late], tmp_path)
        columns = "status, bytes, problems, hops[1].location, told_type"
        assert rows(tmp_path, "captures", columns)[-1] == (599, 2**40, ["late"], "http://e/2", "x")

    def test_many_batches_are_one_table(self, tmp_path, monkeypatch):
        monkeypatch.setattr(parquet, "ROWS_AT_ONCE", 10)
        chunks = (b'<http://e/%d> <http://e/p> "%d" <http://e/g> .\n' % (n, n) for n in range(95))
        assert export_parquet(chunks, [], tmp_path) == (95, 0)
        assert [row[0] for row in rows(tmp_path, "quads", "object")] == [str(n) for n in range(95)]

    def test_nothing_but_the_tables_is_left(self, tmp_path):
        export_parquet([], [], tmp_path / "out")
        assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
            "captures.parquet",
            "quads.parquet",
        ]

    def test_a_failure_leaves_what_was_there(self, tmp_path):
        export_parquet([b"<http://e/s> <http://e/p> _:o <http://e/g> .\n"], [], tmp_path)
        with pytest.raises(NoQuad):
            export_parquet([b"nonsense\n"], [], tmp_path)
        assert len(rows(tmp_path, "quads")) == 1
        assert len(list(tmp_path.iterdir())) == 2

    def test_memory_does_not_grow_with_the_quads(self, tmp_path, monkeypatch):
        monkeypatch.setattr(parquet, "ROWS_AT_ONCE", 1000)
        line = b'<http://e/s> <http://e/p> "%b" <http://e/g> .\n' % (b"x" * 200)
        tracemalloc.start()
        try:
            export_parquet((line * 100 for _ in range(300)), [], tmp_path)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 4_000_000


def rebuilt(row):
    subject, subject_kind, predicate, target, kind, datatype, language, _, graph = row
    terms = {"iri": NamedNode, "blank": BlankNode}
    value = terms[kind](target) if kind in terms else literal(target, datatype, language)
    return Quad(terms[subject_kind](subject), NamedNode(predicate), value, NamedNode(graph))


def literal(text, datatype, language):
    return Literal(text, language=language) if language else Literal(text, datatype=NamedNode(datatype))
