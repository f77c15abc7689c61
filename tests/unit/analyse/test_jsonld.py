"""JSON-LD: contexts known, given or missing; what is broken is mended or told."""

import importlib.util
import io
import json
from pathlib import Path

import pytest
from pyoxigraph import CanonicalizationAlgorithm, Dataset, RdfFormat, parse

from tamias.analyse.jsonld.contexts import known
from tamias.analyse.jsonld.reader import JsonLd
from tamias.analyse.rdf.analyser import RdfAnalyser
from tamias.analyse.rdf.recover import Faults
from tamias.model.document import Document, DocumentBudget
from tamias.model.finding import Problem, Quads
from tests.messages import unnamed, unsaid

URL = "http://a.example/d/doc"
SCHEMA = "http://schema.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"
ROOT = Path(__file__).resolve().parents[3]


def read(data, contexts=None):
    """The statements as text, and the problems."""
    if not isinstance(data, bytes):
        data = (data if isinstance(data, str) else json.dumps(data)).encode()
    document = Document(url=URL, stream=io.BytesIO(data), media_type="application/ld+json")
    quads, problems = [], []
    for finding in RdfAnalyser(contexts=contexts).analyse(document):
        if isinstance(finding, Quads):
            quads += finding.quads
        else:
            problems.append(finding)
    return [str(quad) for quad in quads], problems


def clean(data, contexts=None):
    quads, problems = read(data, contexts)
    assert problems == []
    return sorted(quads)


def given(**contexts):
    """Contexts by the name of their file on c.example, as something that gives them."""
    documents = {f"http://c.example/{name}": json.dumps(value).encode() for name, value in contexts.items()}
    return documents.get


# Contexts that are known


@pytest.mark.parametrize(
    "address",
    [
        "http://schema.org",
        "http://schema.org/",
        "https://schema.org",
        "https://schema.org/",
        "https://www.schema.org/",
        "http://Schema.org/",
        "https://schema.org/docs/jsonldcontext.jsonld",
        "https://schema.org/docs/jsonldcontext.json",
    ],
)
def test_schema_org_is_known_by_all_its_addresses(address):
    [quad] = clean({"@context": address, "@id": "http://s", "name": "x"})
    assert quad == f'<http://s> <{SCHEMA}name> "x"'


def test_another_address_of_schema_org_is_not_taken_for_its_context():
    assert known("http://schema.org/Product") is None
    assert known("http://schema.org.evil.example/") is None


@pytest.mark.parametrize(
    "context",
    [
        '"http://schema.org/"',
        '["http://schema.org/"]',
        '[{"a": "http://a/"}, "http://schema.org/"]',
        '["http://schema.org/", {"a": "http://a/"}]',
        '{"@vocab": "http://schema.org/", "url": {"@type": "@id"}}',
        r'"http:\/\/schema.org\/"',
    ],
)
def test_a_known_context_may_be_named_in_any_way(context):
    quads = clean(f'{{"@context": {context}, "@id": "http://s", "name": "x", "url": "u"}}')
    assert quads == [f'<http://s> <{SCHEMA}name> "x"', f"<http://s> <{SCHEMA}url> <http://a.example/d/u>"]


def test_terms_of_schema_org_have_their_types_and_prefixes():
    quads = clean(
        {
            "@context": "https://schema.org",
            "id": "http://s",
            "type": "Person",
            "birthDate": "2000-01-01",
            "dcterms:title": "t",
        }
    )
    assert quads == [
        '<http://s> <http://purl.org/dc/terms/title> "t"',
        f'<http://s> <{SCHEMA}birthDate> "2000-01-01"^^<{SCHEMA}Date>',
        f"<http://s> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{SCHEMA}Person>",
    ]


def test_a_term_that_is_written_with_an_escape_is_still_seen():
    [quad] = clean(r'{"@context": "https://schema.org", "@id": "http://s", "\u0075rl": "http://u"}')
    assert quad == f"<http://s> <{SCHEMA}url> <http://u>"


def test_our_context_of_schema_org_says_the_same_as_its_own(suites):
    [path] = suites("schemaorg-context").glob("*.jsonld")
    context = json.loads(path.read_text("utf-8"))["@context"]
    node = {name: f"http://v/{number}" for number, name in enumerate(context) if not name.startswith("@")}
    node = {"@id": "http://s"} | {name: value for name, value in node.items() if name not in ("id", "type")}
    theirs = json.dumps({"@context": context, **node}).encode()
    ours = {"@context": "https://schema.org", **node}
    assert clean(ours) == sorted(map(str, parse(theirs, format=RdfFormat.JSON_LD)))


def test_the_table_of_schema_org_is_what_its_tool_makes(suites):
    [path] = suites("schemaorg-context").glob("*.jsonld")
    spec = importlib.util.spec_from_file_location("tool", ROOT / "tools" / "schemaorg_context.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    context = json.loads(path.read_text("utf-8"))["@context"]
    assert tool.TARGET.read_text("utf-8").splitlines()[1:] == list(tool.special_terms(context))


def test_catalogues_of_project_open_data_are_read():
    quads = clean(
        {
            "@context": "https://project-open-data.cio.gov/v1.1/schema/catalog.jsonld",
            "@id": "http://c",
            "dataset": [{"@id": "http://d", "title": "t", "modified": "2020-01-01", "keyword": "k"}],
        }
    )
    assert quads == [
        "<http://c> <http://www.w3.org/ns/dcat#dataset> <http://d>",
        f'<http://d> <http://purl.org/dc/terms/modified> "2020-01-01"^^<{XSD}date>',
        '<http://d> <http://purl.org/dc/terms/title> "t"',
        '<http://d> <http://www.w3.org/ns/dcat#keyword> "k"',
    ]


def test_a_known_context_named_in_every_object_is_read():
    nodes = [{"@context": "https://schema.org", "@id": f"http://s/{n}", "name": "x"} for n in range(5000)]
    assert len(clean(nodes)) == 5000


def test_a_document_that_known_contexts_would_blow_up_is_refused():
    terms = ",".join(f'"{name}":"http://x"' for name in known("http://schema.org/").terms)
    text = f"[{{{terms}}}{', {}' * 0}" + ',{"@context":"http://schema.org"}' * 5000 + "]"
    quads, [problem] = read(text)
    assert (quads, unnamed(problem.what, "JSON-LD context", 16 << 20)) == ([], [])


# Contexts that others give


@pytest.mark.parametrize(
    "context", ['"http://c.example/a"', '["http://c.example/a"]', '[{}, "http://c.example/a"]']
)
def test_a_remote_context_that_is_not_at_hand_is_a_problem_that_names_it(context):
    quads, problems = read(f'{{"@context": {context}, "@id": "http://s", "http://p": "x"}}')
    what = "remote JSON-LD context http://c.example/a is not at hand, document not read"
    assert (quads, problems) == ([], [Problem(what, wants="http://c.example/a")])


def test_all_missing_contexts_are_named_at_once():
    node = {"@context": ["http://c.example/a", "b"], "http://p": {"@context": "http://c.example/c"}}
    _, problems = read(node)
    wanted = ["http://c.example/a", "http://a.example/d/b", "http://c.example/c"]
    assert [problem.wants for problem in problems] == wanted


def test_a_remote_context_that_is_given_is_used():
    contexts = given(a={"@context": {"p": "http://p"}})
    assert clean({"@context": "http://c.example/a", "@id": "http://s", "p": 1}, contexts) == [
        f'<http://s> <http://p> "1"^^<{XSD}integer>'
    ]


def test_a_context_may_name_others_relative_to_itself():
    contexts = given(a={"@context": ["b", {"q": "http://q"}]}, b={"@context": {"p": "http://p"}})
    quads = clean({"@context": "http://c.example/a", "@id": "http://s", "p": "1", "q": "2"}, contexts)
    assert quads == ['<http://s> <http://p> "1"', '<http://s> <http://q> "2"']


def test_a_context_of_a_context_is_wanted_when_the_first_is_there():
    _, [problem] = read({"@context": "http://c.example/a", "p": 1}, given(a={"@context": "b"}))
    assert problem.wants == "http://c.example/b"


def test_a_known_and_a_given_context_go_together():
    contexts = given(a={"@context": {"p": "http://p"}})
    node = {
        "@context": ["https://schema.org", "http://c.example/a"],
        "@id": "http://s",
        "name": "n",
        "p": "x",
    }
    assert clean(node, contexts) == ['<http://s> <http://p> "x"', f'<http://s> <{SCHEMA}name> "n"']


def test_contexts_that_include_each_other_are_a_problem():
    contexts = given(a={"@context": "b"}, b={"@context": "a"})
    quads, [problem] = read({"@context": "http://c.example/a", "http://p": 1}, contexts)
    assert (quads, problem.what) == ([], "Cyclical @context URLs detected.")


def test_a_context_that_is_no_json_is_a_problem():
    quads, [problem] = read({"@context": "http://c.example/a", "http://p": 1}, lambda _address: b"<html>")
    assert quads == []
    assert "Dereferencing a URL" in problem.what


def test_a_context_that_is_too_large_is_a_problem():
    large = json.dumps({"@context": {}, "x": "x" * (1 << 20)}).encode()
    _, [problem] = read({"@context": "http://c.example/a", "http://p": 1}, lambda _address: large)
    assert "Dereferencing" in problem.what or "1048576 bytes" in problem.what


def test_a_row_of_contexts_is_followed_only_so_far():
    def endless(address):
        return json.dumps({"@context": address + "x"}).encode()

    quads, [problem] = read({"@context": "http://c.example/a", "http://p": 1}, endless)
    assert quads == []
    assert not unsaid(problem.what)


@pytest.mark.parametrize("where", ["here", "remote"])
def test_a_scoped_context_that_would_be_gone_through_too_often_is_refused(where):
    scoped = {f"t{number}": {"@id": f"http://e/{number}"} for number in range(2500)}
    context = {"T": {"@id": "http://T", "@context": scoped}}
    contexts = given(a={"@context": context})
    node = {
        "@context": context if where == "here" else "http://c.example/a",
        "@graph": [{"@type": "T"}] * 8000,
    }
    quads, [problem] = read(node, contexts)
    assert quads == []
    assert not unsaid(problem.what)


def test_deep_json_with_a_remote_context_is_no_harm():
    text = '{"@context": "http://c.example/a", "http://p":' + '{"http://p":' * 490 + "1" + "}" * 491
    _, problems = read(text, given(a={"@context": {}}))
    assert len(problems) <= 1


def test_objects_whose_contexts_are_at_hand_are_read_beside_one_whose_is_not():
    quads, [problem] = read(
        [{"@context": "http://c.example/a", "p": 1}, {"@id": "http://s", "http://p": "x"}]
    )
    assert (quads, problem.wants) == (['<http://s> <http://p> "x"'], "http://c.example/a")


def test_labels_of_blank_nodes_survive_a_remote_context():
    contexts = given(a={"@context": {"p": "http://p"}})
    [quad] = clean({"@context": "http://c.example/a", "@id": "_:me", "p": {"@id": "_:you"}}, contexts)
    assert quad == "_:me <http://p> _:you"


# What pyoxigraph leaves to us


def test_dot_segments_of_a_base_are_removed():
    [quad] = clean({"@context": {"@base": "http://b/c/./d/../e"}, "@id": "s", "http://p": "x"})
    assert quad == '<http://b/c/s> <http://p> "x"'


def test_a_term_with_a_slash_is_relative_to_the_vocabulary():
    context = {"@vocab": "http://v.example/", "a/b": {"@type": "@id"}}
    found = clean({"@context": context, "@id": "x:s", "a/b": "x:o"})
    assert found == ["<x:s> <http://v.example/a/b> <x:o>"]


def test_the_direction_of_a_text_is_left_out():
    [quad] = clean({"@id": "http://s", "http://p": {"@value": "x", "@language": "ar", "@direction": "rtl"}})
    assert quad == '<http://s> <http://p> "x"@ar'


# What is broken


GOOD = '{"@id": "http://s/%d", "http://p": "x"}'


def objects(*texts):
    return "[" + ",\n".join(texts) + "]"


@pytest.mark.parametrize(
    "bad",
    [
        '{"@id": "http://s/2", "http://p": }',
        '{"@id": "http://s/2", "http://p" "x"}',
        '{"@id": "http://s/2", "http://p: "x"}',
        '{"@id": "http://s/2", "@type": 7}',
        '{"@id": "http://s/2", "@context": {"@base": 7}}',
    ],
)
def test_of_an_array_with_a_bad_object_the_others_are_read(bad):
    quads, problems = read(objects(GOOD % 1, bad, GOOD % 3))
    assert quads == ['<http://s/1> <http://p> "x"', '<http://s/3> <http://p> "x"']
    assert 2 in [problem.line for problem in problems]


def test_of_a_graph_with_a_bad_node_the_others_are_read_under_its_context():
    nodes = '{"@id": "http://s/1", "p": "x"},\n{"@id": "http://s/2", "p": },\n{"@id": "http://s/3", "p": "y"}'
    quads, problems = read(f'{{"@context": {{"p": "http://p"}}, "@graph": [{nodes}]}}')
    assert quads == ['<http://s/1> <http://p> "x"', '<http://s/3> <http://p> "y"']
    assert problems


def test_a_graph_that_has_a_name_is_not_read_without_it():
    nodes = '{"@id": "http://s/1", "http://p": "x"}, {"@id": "http://s/2", "@type": 7}'
    quads, problems = read(f'{{"@context": {{}}, "@graph": [{nodes}], "@id": "http://g"}}')
    assert (quads, len(problems)) == ([], 1)


def test_a_document_that_is_cut_off_keeps_its_whole_objects():
    quads, problems = read(objects(GOOD % 1, GOOD % 2)[:-15])
    assert (quads, bool(problems)) == (['<http://s/1> <http://p> "x"'], True)


def test_a_trailing_comma_is_mended_and_told_with_its_place():
    quads, [problem] = read('{"@id": "http://s",\n "http://p": "x",\n}')
    assert quads == ['<http://s> <http://p> "x"']
    assert (problem.line, problem.column) in {(3, 1), (2, 17)}  # Python 3.13 names the comma itself


def test_garbage_is_given_up():
    quads, problems = read("[" + "{bad}," * 100_000)
    assert quads == []
    assert len(problems) <= 101


@pytest.mark.parametrize("text", ["", " \n", "7", '"x"', "null", "[]", "{}"])
def test_json_without_statements_has_none(text):
    assert read(text)[0] == []


@pytest.mark.parametrize(
    "text", ["/*" * 100_000, " " * 200_000 + "x", '"' * 100_000, "}\n" * 100_000, "," * 100_000]
)
def test_mending_takes_no_longer_than_reading(text):
    read("{" + text)


def test_two_readings_say_the_same():
    node = [{"@context": "https://schema.org", "name": "x", "knows": {"name": "y"}}]
    found = []
    for _ in range(2):
        faults = Faults(100, DocumentBudget(1000))
        reads = JsonLd().found(json.dumps(node).encode(), URL, faults)
        dataset = Dataset(quad for read in reads for quad in read)
        dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
        found.append(dataset)
    assert found[0] == found[1]


# What pyoxigraph gets wrong


@pytest.mark.parametrize(
    "lost",
    [
        {"@type": "Thing"},
        [{"@type": ["Thing"], "name": "b"}],
        {"name": {"@id": "http://a.example/b", "@type": "Thing"}},
        {"@context": {"other": "http://a.example/other"}, "other": {"@type": "Thing"}},
    ],
)
def test_a_key_that_no_context_defines_is_left_out_with_the_types_under_it(lost):
    context = {"Thing": "http://a.example/Thing", "name": "http://a.example/name", "no": None}
    for key in ("undefined", "no"):
        document = {
            "@context": context,
            "@id": "http://a.example/a",
            "name": "a",
            "@type": "Thing",
            key: lost,
        }
        assert clean(document) == [
            '<http://a.example/a> <http://a.example/name> "a"',
            "<http://a.example/a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://a.example/Thing>",
        ]
