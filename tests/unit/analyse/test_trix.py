"""TriX becomes quads in their graphs; what is broken or hostile becomes a problem."""

import io
import subprocess
import sys

import pytest

from tamias.features.syntaxes.trix import TrixAnalyser
from tamias.model.document import Document, LimitExceeded
from tamias.model.finding import Quads
from tamias.settings import AnalyseSettings
from tests.examples import sample
from tests.messages import unsaid

ROOT = '<TriX xmlns="http://www.w3.org/2004/03/trix/trix-1/">'
TRIPLE = "<triple><uri>http://e/s</uri><uri>http://e/p</uri><plainLiteral>x</plainLiteral></triple>"


def read(data, *, charset=None, **limits):
    """The quads as text, and the problems."""
    stream = data if hasattr(data, "read") else io.BytesIO(data.encode() if isinstance(data, str) else data)
    document = Document(url="http://a/d", stream=stream, media_type="application/trix", charset=charset)
    quads, problems = [], []
    for finding in TrixAnalyser(AnalyseSettings(**limits)).analyse(document):
        if isinstance(finding, Quads):
            quads += map(str, finding.quads)
        else:
            problems.append(finding)
    return quads, problems


def triple(*terms):
    return f"{ROOT}<graph><triple>{''.join(terms)}</triple></graph></TriX>"


def object_of(term):
    [quad], [] = read(triple("<uri>http://e/s</uri><uri>http://e/p</uri>", term))
    return quad.removeprefix("<http://e/s> <http://e/p> ")


def only_problem(data, **options):
    quads, [problem] = read(data, **options)
    assert quads == []
    return problem


@pytest.mark.parametrize(
    ("element", "term"),
    [
        ("<uri> http://e/o\n</uri>", "<http://e/o>"),
        ("<id>x</id>", "_:x"),
        ("<plainLiteral>a &lt; b</plainLiteral>", '"a < b"'),
        ("<plainLiteral> a\n</plainLiteral>", '" a\\n"'),
        ("<plainLiteral/>", '""'),
        ('<plainLiteral xml:lang="en-GB">x</plainLiteral>', '"x"@en-gb'),
        ('<typedLiteral datatype="http://e/t">1</typedLiteral>', '"1"^^<http://e/t>'),
        ("<plainLiteral><![CDATA[<b>]]> &amp; &#65;</plainLiteral>", '"<b> & A"'),
    ],
)
def test_every_kind_of_term_is_read(element, term):
    assert object_of(element) == term


def test_statements_are_in_their_graphs():
    text = (
        f"{ROOT}<graph><uri>http://e/g</uri>{TRIPLE}</graph><graph>{TRIPLE}</graph>"
        f"<graph><id>g</id>{TRIPLE}</graph></TriX>"
    )
    quads, problems = read(text)
    assert [quad.rpartition('"')[2] for quad in quads] == [" <http://e/g>", "", " _:g"]
    assert problems == []


def test_a_language_holds_for_all_inside():
    text = f'{ROOT}<graph xml:lang="de">{TRIPLE}</graph></TriX>'
    assert read(text)[0] == ['<http://e/s> <http://e/p> "x"@de']


def test_a_label_that_is_none_stays_one_node():
    [quad], _ = read(triple("<id>a b</id><uri>http://e/p</uri><id>a b</id>"))
    subject, _, value = quad.split()
    assert subject == value


def test_comments_and_instructions_do_not_disturb():
    text = triple("<uri>http://e/<!-- a -->s</uri><?x y?><uri>http://e/p</uri><id>x</id>")
    assert read(text) == (["<http://e/s> <http://e/p> _:x"], [])


def test_other_encodings_are_read():
    text = f'<?xml version="1.0" encoding="ISO-8859-1"?>{triple("<id>s</id><uri>http://e/ü</uri><id>o</id>")}'
    assert read(text.encode("latin-1"), charset="iso8859-1")[0] == ["_:s <http://e/ü> _:o"]


def test_entities_of_the_document_are_expanded():
    text = '<!DOCTYPE TriX [<!ENTITY e "http://e/">]>' + triple(
        '<uri>&e;s</uri><uri>http://e/p</uri><typedLiteral datatype="&e;t">x</typedLiteral>'
    )
    assert read(text)[0] == ['<http://e/s> <http://e/p> "x"^^<http://e/t>']


# What is broken


@pytest.mark.parametrize(
    ("terms", "what"),
    [
        ("<uri>s</uri><uri>http://e/p</uri><id>o</id>", "'s'"),
        ("<uri>http://e/s</uri><id>o</id>", "triple of 2 terms"),
        ("<id>s</id><uri>http://e/p</uri><id>o</id><id>x</id>", "triple of 4 terms"),
        ("<id>s</id><uri>http://e/p</uri><qname>e:o</qname>", "element qname in a triple"),
        ('<id>s</id><uri>http://e/p</uri><plainLiteral xml:lang="x y">x</plainLiteral>', "language"),
        ("<plainLiteral>s</plainLiteral><uri>http://e/p</uri><id>o</id>", ""),
    ],
)
def test_a_bad_triple_is_a_problem_with_its_line_and_the_next_is_read(terms, what):
    quads, [problem] = read(f"{ROOT}\n<graph>\n<triple>{terms}</triple>\n{TRIPLE}</graph></TriX>")
    assert len(quads) == 1
    assert what in problem.what
    assert problem.line == 3


def test_a_bad_graph_name_is_a_problem():
    quads, [problem] = read(f"{ROOT}<graph><uri>g g</uri>{TRIPLE}</graph></TriX>")
    assert len(quads) == 1
    assert "graph name" in problem.what


def test_what_stands_before_a_fault_is_read():
    quads, [problem] = read(f"{ROOT}<graph>{TRIPLE}\n{TRIPLE}\n<triple></graph>{TRIPLE}</TriX>")
    assert len(quads) == 2
    assert problem.what.startswith("XML: ")
    assert problem.line == 3


def test_a_document_that_ends_early_is_a_problem():
    quads, [problem] = read(f"{ROOT}<graph>{TRIPLE}<triple><uri>http://e")
    assert len(quads) == 1
    assert problem.what.startswith("XML: ")


def test_problems_are_counted_beyond_the_limit():
    bad = "<triple><uri>s</uri></triple>"
    _, problems = read(f"{ROOT}<graph>{bad * 10}</graph></TriX>", max_errors=3)
    assert len(problems) == 4
    assert not unsaid(problems[-1].what, "7", "analyse.max_errors")


def test_a_limit_of_the_stream_passes_through_after_what_was_read():
    class Cut(io.BytesIO):
        def read(self, size=-1):
            return super().read(size) or self._stop()

        def _stop(self):
            raise LimitExceeded("enough")

    document = Document(
        url="u:", stream=Cut(f"{ROOT}<graph>{TRIPLE}".encode()), media_type="application/trix"
    )
    findings = TrixAnalyser().analyse(document)
    assert len(next(findings).quads) == 1
    with pytest.raises(LimitExceeded, match="enough"):
        next(findings)


# What is hostile


def test_entities_that_multiply_are_refused():
    levels = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 8))
    text = f'<!DOCTYPE TriX [<!ENTITY l0 "lol">{levels}]>' + triple("<id>&l7;</id>")
    assert "limit analyse.entity_bytes" in only_problem(text).what


@pytest.mark.parametrize("kind", ['SYSTEM "file:///etc/passwd"', 'PUBLIC "x" "http://127.0.0.1:9/x"'])
def test_nothing_outside_is_read(kind):
    text = f"<!DOCTYPE TriX [<!ENTITY x {kind}>]>" + triple(
        "<id>s</id><uri>http://e/p</uri><plainLiteral>a&x;b</plainLiteral>"
    )
    quads, _ = read(text)
    assert "root" not in "".join(quads)


def test_deep_nesting_is_a_problem():
    assert only_problem(ROOT + "<graph>" * 100_000).what.startswith("XML: ")


@pytest.mark.parametrize(
    "filler",
    sample(["<triple/>", "<x/>", "<!-- x -->", "<graph/>", "\n     ", "<triple><x/></triple>"], 3),
)
def test_memory_does_not_grow_with_the_document(filler):
    program = (
        "import io, resource; from tamias.features.syntaxes.trix import TrixAnalyser\n"
        "from tamias.model.document import Document\n"
        "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "class Long(io.RawIOBase):\n"
        "    left = 0\n"
        "    def read(self, size=-1):\n"
        "        self.left -= 1\n"
        f"        return ROOT if self.left == FULL else FILLER * 1000 if self.left > 0 else b''\n"
        "def read(chunks):\n"
        "    global FULL; stream = Long(); FULL, stream.left = chunks, chunks + 1\n"
        "    for _ in TrixAnalyser().analyse(Document(url='u:', stream=stream, media_type='x')): pass\n"
        f"ROOT, FILLER = b'<TriX><graph>', {filler.encode()!r}\n"
        "read(50); before = peak(); read(600); print(peak() - before)"
    )
    process = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True)
    assert int(process.stdout) < 8_000
