"""RDF/JSON becomes quads; what is broken or hostile becomes a problem."""

import io
import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamias.features.syntaxes.rdf_json import RdfJsonAnalyser
from tamias.model.document import Document, LimitExceeded
from tamias.model.finding import Quads
from tamias.settings import AnalyseSettings

GOOD = '"http://e/s": {"http://e/p": [{"type": "uri", "value": "http://e/o"}]}'


class Slow(io.BytesIO):
    """Gives few bytes at a time."""

    def __init__(self, data, step):
        super().__init__(data)
        self._step = step

    def read(self, size=-1):
        return super().read(self._step)


def read(data, *, step=None, **limits):
    """The quads as text, and the problems."""
    data = data.encode() if isinstance(data, str) else data
    stream = io.BytesIO(data) if step is None else Slow(data, step)
    document = Document(url="http://a/d", stream=stream, media_type="application/rdf+json")
    quads, problems = [], []
    for finding in RdfJsonAnalyser(AnalyseSettings(**limits)).analyse(document):
        if isinstance(finding, Quads):
            quads += map(str, finding.quads)
        else:
            problems.append(finding)
    return quads, problems


@pytest.mark.parametrize(
    ("found", "term"),
    [
        ({"type": "uri", "value": "http://e/o"}, "<http://e/o>"),
        ({"type": "bnode", "value": "_:x"}, "_:x"),
        ({"type": "literal", "value": 'a\n"b"'}, '"a\\n\\"b\\""'),
        ({"type": "literal", "value": "x", "lang": "de"}, '"x"@de'),
        ({"type": "literal", "value": "x", "lang": ""}, '"x"'),
        ({"type": "literal", "value": "1", "datatype": "http://e/t"}, '"1"^^<http://e/t>'),
    ],
)
def test_every_kind_of_object_is_read(found, term):
    text = json.dumps({"_:s": {"http://e/p": [found]}})
    assert read(text) == ([f"_:s <http://e/p> {term}"], [])


def test_an_object_without_its_list_is_read():
    assert len(read('{"_:s": {"http://e/p": {"type": "bnode", "value": "_:x"}}}')[0]) == 1


@pytest.mark.parametrize("text", ["{}", " { } \n", '{"_:s": {}}', '{"_:s": {"http://e/p": []}}'])
def test_nothing_is_said_by_nothing(text):
    assert read(text) == ([], [])


def test_a_subject_that_comes_twice_says_both():
    assert len(read(f"{{{GOOD}, {GOOD}}}")[0]) == 2


TERMS = st.builds(lambda value: {"type": "literal", "value": value}, st.text(max_size=30))
SUBJECTS = st.sampled_from(["http://e/s", "_:b", "http://e/größe"])


@given(st.dictionaries(SUBJECTS, st.dictionaries(st.just("http://e/p"), st.lists(TERMS))), st.integers(1, 50))
def test_it_may_come_in_pieces_of_any_size(document, step):
    text = json.dumps(document, ensure_ascii=False).encode("utf-8", "replace")
    assert read(text, step=step) == read(text)


def test_a_document_larger_than_a_window_is_read():
    text = "{" + ",\n".join(GOOD for _ in range(20_000)) + "}"
    quads, problems = read(text)
    assert (len(quads), problems) == (20_000, [])


# What is broken


@pytest.mark.parametrize(
    "said",
    [
        '{"http://e/p": [{"type": "uri", "value": "o"}]}',
        '{"p": [{"type": "bnode", "value": "o"}]}',
        '{"http://e/p": [{"type": "thing", "value": "o"}]}',
        '{"http://e/p": [{"type": "uri"}]}',
        '{"http://e/p": ["o"]}',
        '{"http://e/p": [{"type": "literal", "value": "\\ud800"}]}',
        '{"http://e/p": [{"type": "literal", "value": "x", "lang": "x y"}]}',
        '{"http://e/p": [{"type": "literal", "value": "x", "lang": []}]}',
        '["http://e/p"]',
        "1e999999",
        "9" * 9999,
    ],
)
def test_a_bad_statement_is_a_problem_with_its_line_and_the_next_is_read(said):
    quads, [problem] = read(f'{{\n"_:s": {said},\n{GOOD}}}')
    assert len(quads) == 1
    assert problem.line == 2


@pytest.mark.parametrize("text", ['{GOOD, "_:x": {', "{GOOD, ", "{GOOD", "{GOOD]", "{GOOD x", "{GOOD, x: 1}"])
def test_what_stands_before_a_fault_is_read(text):
    quads, [problem] = read("\n" + text.replace("GOOD", GOOD))
    assert len(quads) == 1
    assert problem.what.startswith("JSON: ")
    assert problem.line == 2


def test_something_after_the_end_is_told():
    quads, [problem] = read(f"{{{GOOD}}}\n{{}}")
    assert len(quads) == 1
    assert problem.line == 2


@pytest.mark.parametrize("text", ["", "[]", "null", "x", '"x"', "\0"])
def test_what_is_no_object_is_a_problem(text):
    assert len(read(text)[1]) == 1


def test_problems_are_counted_beyond_the_limit():
    _, problems = read("{" + ",".join('"_:s": 1' for _ in range(10)) + "}", max_errors=3)
    assert [problem.what for problem in problems[3:]] == ["7 more errors (limit analyse.max_errors)"]


def test_a_limit_of_the_stream_passes_through_after_what_was_read():
    class Cut(Slow):
        def read(self, size=-1):
            data = super().read(size)
            if not data:
                raise LimitExceeded("enough")
            return data

    stream = Cut(f"{{{GOOD},".encode() + b" " * 70_000, 70_000)
    findings = RdfJsonAnalyser().analyse(Document(url="u:", stream=stream, media_type="application/rdf+json"))
    assert len(next(findings).quads) == 1
    with pytest.raises(LimitExceeded, match="enough"):
        next(findings)


# What is hostile


def test_deep_nesting_is_refused():
    _, [problem] = read('{"_:s": ' + "[" * 100_000)
    assert "limit analyse.json_depth" in problem.what


def test_one_endless_subject_is_refused():
    quads, [problem] = read(f'{{{GOOD}, "_:s": "{"x" * 500_000}', rdfjson_subject=100_000)
    assert len(quads) == 1
    assert "more than 100000 characters" in problem.what


def test_memory_does_not_grow_with_the_document():
    program = (
        "import io, resource; from tamias.features.syntaxes.rdf_json import RdfJsonAnalyser\n"
        "from tamias.model.document import Document\n"
        "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "class Long(io.RawIOBase):\n"
        "    left, begun = 0, False\n"
        "    def read(self, size=-1):\n"
        "        if not self.begun: self.begun = True; return b'{'\n"
        "        self.left -= 1\n"
        f"        return {(GOOD + ',').encode()!r} * 200 if self.left > 0 else b''\n"
        "def read(chunks):\n"
        "    stream = Long(); stream.left = chunks\n"
        "    for _ in RdfJsonAnalyser().analyse(Document(url='u:', stream=stream, media_type='x')): pass\n"
        "read(20); before = peak(); read(600); print(peak() - before)"
    )
    process = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True)
    assert int(process.stdout) < 8_000
