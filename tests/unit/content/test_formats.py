"""The table of formats and everybody who asks it: a serialisation that one part knows, all know."""

import ast
from io import BytesIO
from pathlib import Path

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, serialize

import tamias
from tamias.analyse.links.discovery import alternates
from tamias.content import formats
from tamias.content.blank_nodes import canonical_lines
from tamias.content.formats import FORMATS, Form, Format
from tamias.content.sniff import found_type
from tamias.crawl.analysis.analysers import Analysers
from tamias.features.archive.canonical.content_digest import Stored, content_digest
from tamias.features.archive.canonical.statements import statement_lines
from tamias.features.diffs.compare import diff
from tamias.features.quality.formats import is_machine_readable, is_open
from tamias.fetch.credentials import HttpOptions
from tamias.model.finding import Quads
from tamias.settings import Settings
from tamias.sinks.export import export, export_formats

ROWS = [*FORMATS.values()]
RDF = [row for row in ROWS if row.form is Form.STATEMENTS]
GRAPH = [
    Quad(NamedNode("http://e.org/a"), NamedNode("http://e.org/p"), NamedNode("http://e.org/b")),
    Quad(NamedNode("http://e.org/a"), NamedNode("http://e.org/q"), BlankNode("x")),
    Quad(BlankNode("x"), NamedNode("http://e.org/r"), Literal("süß", language="de")),
]
TRIX = """<TriX xmlns="http://www.w3.org/2004/03/trix/trix-1/"><graph>
<triple><uri>http://e.org/a</uri><uri>http://e.org/p</uri><uri>http://e.org/b</uri></triple>
<triple><uri>http://e.org/a</uri><uri>http://e.org/q</uri><id>n1</id></triple>
<triple><id>n1</id><uri>http://e.org/r</uri><plainLiteral xml:lang="de">süß</plainLiteral></triple>
</graph></TriX>"""
RDF_JSON = """{"http://e.org/a": {"http://e.org/p": [{"type": "uri", "value": "http://e.org/b"}],
"http://e.org/q": [{"type": "bnode", "value": "_:k"}]},
"_:k": {"http://e.org/r": [{"type": "literal", "value": "süß", "lang": "de"}]}}"""


def written(row: Format, quads=GRAPH) -> bytes:
    """The graph in a serialisation: by pyoxigraph, by our export, or by hand."""
    if row.syntax is not None:
        return serialize(quads, format=row.syntax)
    if row.writer is not None:
        out = BytesIO()
        export([serialize(quads, format=RdfFormat.N_QUADS)], out, row.writer)
        return out.getvalue()
    return {formats.TRIX: TRIX, formats.RDF_JSON: RDF_JSON}[row.media_type].encode()


def by_type(rows):
    return pytest.mark.parametrize("row", rows, ids=lambda row: row.media_type)


@by_type(RDF)
def test_every_serialisation_is_read_by_the_crawl_and_by_the_archive_as_the_same_graph(row, tmp_path):
    expected = canonical_lines(serialize(GRAPH, format=RdfFormat.N_QUADS).splitlines())
    content = written(row)
    reading = tamias.read(content, media_type=row.media_type, base="http://e.org/doc")
    read = serialize(reading.quads, format=RdfFormat.N_QUADS).splitlines()
    assert (reading.media_type, canonical_lines(read)) == (row.media_type, expected)
    file = tmp_path / "file"
    file.write_bytes(content)
    assert canonical_lines(statement_lines(file, row.media_type, 1 << 20)) == expected


@by_type(RDF)
def test_every_serialisation_is_known_to_everybody(row):
    accept = HttpOptions(user_agent="t", spool_dir="/").accept
    assert row.media_type in [part.partition(";")[0] for part in accept.split(", ")]
    assert row.media_type in Analysers(Settings())
    assert formats.form_of(row.media_type) is Form.STATEMENTS
    links = (f'</other>; rel=alternate; type="{row.media_type}"', "</x>; rel=alternate")
    assert alternates([("Link", link) for link in links]) == ["/other"]
    assert (is_open(row.media_type), is_machine_readable(row.media_type)) == (True, True)
    assert row.endings


def test_what_export_writes_are_the_writers_of_the_table():
    assert {row.writer for row in ROWS if row.writer} == set(export_formats())


def test_crawls_still_prefer_what_they_preferred():
    parts = [part.partition(";q=") for part in formats.accept_header().split(", ")]
    ranks = {name: float(q or 1) for name, _, q in parts}
    best = ("text/turtle", "application/n-triples", "application/n-quads", "application/trig")
    assert [ranks[name] for name in best] == [1] * 4
    order = ["application/ld+json", "application/rdf+xml", "application/trix", "text/html", "*/*"]
    assert [ranks[name] for name in order] == sorted((ranks[name] for name in order), reverse=True)


@by_type(ROWS)
def test_every_name_of_a_format_leads_to_it(row):
    assert {formats.bare_type(f"{alias.upper()}; a=b") for alias in row.aliases} <= {row.media_type}
    assert {formats.media_type_of(name.upper()) for name in (*row.names, *row.endings)} <= {row.media_type}
    assert {formats.media_type_of(f".{name}") for name in row.endings} <= {row.media_type}
    suffix = formats.suffix_of(row.media_type)
    assert suffix is None or formats.media_type_of(suffix) == row.media_type


def test_no_name_stands_for_two_formats():
    for names in (
        [row.media_type for row in ROWS] + [alias for row in ROWS for alias in row.aliases],
        [name for row in ROWS for name in (*row.names, *row.endings)],
        [magic for row in ROWS for magic in row.signatures],
    ):
        assert sorted(names) == sorted(set(names))


def test_no_other_module_keeps_a_list_of_serialisations():
    """Two lists drift apart. Whoever offers some of them names the table's constants."""
    kinds = {row.media_type for row in RDF}
    sources = Path(tamias.__file__).parent
    lists = [
        path.relative_to(sources).as_posix()
        for path in sources.rglob("*.py")
        if len(kinds & {node.value for node in ast.walk(ast.parse(path.read_text())) if _is_text(node)}) > 2
    ]
    # The EU's table of file types has codes of its own.
    assert sorted(lists) == ["content/formats.py", "features/dcat/datasets/authority.py"]


def _is_text(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


@by_type([row for row in ROWS if row.analyser])
def test_every_analyser_reads_what_the_table_says(row):
    made = formats.load_analyser(row.media_type)
    assert row.media_type in made.media_types
    assert isinstance(Analysers(Settings())[row.media_type], made)


class WordsAnalyser:
    """Three words a line are a statement."""

    media_types = frozenset({"application/x-words"})

    def analyse(self, document):
        lines = document.stream.read().decode().splitlines()[1:]
        yield Quads(
            [Quad(*(NamedNode(f"http://w.org/{word}") for word in line.split())) for line in lines if line]
        )


WORDS = Format(
    media_type="application/x-words",
    aliases=("text/words",),
    names=("three words",),
    endings=("words",),
    signatures=(b"\x03WORDS\n",),
    form=Form.STATEMENTS,
    analyser=f"{__name__}:WordsAnalyser",
    q=0.55,
)


@pytest.fixture
def words():
    """A row more, for one test."""
    tables = (formats.FORMATS, formats.ALIASES, formats.BY_ENDING, formats.BY_NAME, formats.BY_FIRST_BYTE)
    before = [dict(table) for table in tables]
    formats.add([WORDS])
    yield
    for table, old in zip(tables, before, strict=True):
        table.clear()
        table.update(old)
    formats.bare_type.cache_clear()


@pytest.mark.usefixtures("words")
def test_a_row_and_its_analyser_are_all_that_a_new_format_needs(tmp_path):
    old, new = b"\x03WORDS\na b c\n", b"\x03WORDS\nd e f\na b c\n"
    assert formats.media_type_of("Three Words") == formats.bare_type("text/words") == WORDS.media_type
    assert found_type(old, None, "") == found_type(b"\0\1\2\3" * 50, None, "x.words") == WORDS.media_type
    assert "application/x-words;q=0.55" in HttpOptions(user_agent="t", spool_dir="/").accept
    assert formats.suffix_of(WORDS.media_type) == ".words"
    assert is_open(WORDS.media_type)
    statements = [str(quad) for quad in tamias.read(old).quads]
    assert statements == ["<http://w.org/a> <http://w.org/b> <http://w.org/c>"]
    (tmp_path / "old").write_bytes(old)
    (tmp_path / "new").write_bytes(new)
    told = diff(tmp_path / "old", tmp_path / "new", "text/words")
    assert (told.kind, told.added, told.removed) == ("triples", 1, 0)
    (tmp_path / "other").write_bytes(old + b"\n")
    told = [
        content_digest(Stored(source=tmp_path / name, media_type="text/words")) for name in ("old", "other")
    ]
    assert told[0] == told[1]
    assert told[0].form is formats.Form.STATEMENTS


def test_rdf_in_json_that_is_no_sound_graph_is_still_compared_as_json(tmp_path):
    for name, text in (("a", '{"no iri": {"p": 1}, "x": 2}'), ("b", '{"x": 2,  "no iri": {"p": 1}}')):
        (tmp_path / name).write_text(text)
    found = [content_digest(Stored(source=tmp_path / name, media_type=formats.RDF_JSON)) for name in "ab"]
    assert found[0] == found[1]
    assert found[0].form is formats.Form.JSON
    assert diff(tmp_path / "a", tmp_path / "b", formats.RDF_JSON).kind == "json"
