"""HDT files are read, whoever wrote them; what lies, is damaged or grows becomes a problem."""

import io
import random
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import BaseDirection, BlankNode, Literal, NamedNode, Quad, RdfFormat, Triple, parse

from tamias.features.hdt import writer
from tamias.features.hdt.analyser import HdtAnalyser
from tamias.features.hdt.writer import crc8, crc16, crc32c, write_hdt
from tamias.model.document import Document, LimitExceeded
from tamias.model.finding import Problem, Quads
from tamias.settings import AnalyseSettings
from tests.messages import unsaid

MIB = 1 << 20
DATA = Path(__file__).with_name("data")
XSD = "http://www.w3.org/2001/XMLSchema#"
E = "http://example.org/"


def read(data, **limits):
    """The quads and the texts of the problems."""
    stream = data if hasattr(data, "read") else io.BytesIO(data)
    document = Document(url="http://a.example/d.hdt", stream=stream, media_type="application/vnd.hdt")
    quads, problems = [], []
    for finding in HdtAnalyser(AnalyseSettings(**limits)).analyse(document):
        if isinstance(finding, Quads):
            quads += finding.quads
        elif isinstance(finding, Problem):
            problems.append(finding.what)
    return quads, problems


def written(triples):
    out = io.BytesIO()
    write_hdt([Triple(*triple) for triple in triples], out, name="urn:x", most=10**6)
    return out.getvalue()


def many_predicates(size=300):
    source = random.Random(1)
    for i in range(size):
        language = source.choice(["en", "de-at", "zh-hant"])
        yield (
            NamedNode(f"{E}s/{i % 70}"),
            NamedNode(f"{E}p/{i % 41}"),
            Literal(f"größe 🐿 {i}\n", language=language),
        )
        yield (
            NamedNode(f"{E}s/{i % 70}"),
            NamedNode(f"{E}q/{i}"),
            Literal(str(i), datatype=NamedNode(XSD + "int")),
        )


def one_subject(size=40_000):
    return ((NamedNode(E), NamedNode(E + "has"), NamedNode(f"{E}part/{i:06}")) for i in range(size))


def blank_nodes_and_long_strings(size=200):
    for i in range(size):
        yield BlankNode(f"b{i}"), NamedNode(E + "next"), BlankNode(f"b{i * 7 % size}")
        yield BlankNode(f"b{i}"), NamedNode(E + "text"), Literal("same start " * 3000 + str(i % 50))


SHAPES = [many_predicates, one_subject, blank_nodes_and_long_strings]


def test_a_file_of_the_reference_implementation_is_read_with_every_triple():
    quads, problems = read((DATA / "hdt-cpp.hdt").read_bytes())
    assert problems == []
    assert set(quads) == set(parse((DATA / "hdt-cpp.nt").read_bytes(), format=RdfFormat.N_TRIPLES))


def test_a_file_made_by_hand_from_the_specification_is_read():
    def control(kind, words):
        data = b"$HDT" + bytes([kind]) + words
        return data + crc16(data)

    def checked(claims, data):
        return claims + crc8(claims) + data + crc32c(data)

    def section(*strings):
        buffer = b"".join(string + b"\0" for string in strings)
        claims = b"\x02" + bytes([0x80 | len(strings), 0x80 | len(buffer), 0x90])
        starts = checked(b"\x01\x08\x82", bytes([0, len(buffer)]))
        return claims + crc8(claims) + starts + buffer + crc32c(buffer)

    header = b"<urn:d> <urn:p> <urn:o> .\n"
    data = b"".join(
        (
            control(1, b"<http://purl.org/HDT/hdt#HDTv1>\0\0"),
            control(2, b"ntriples\0length=%d;\0" % len(header)) + header,
            control(3, b"<http://purl.org/HDT/hdt#dictionaryFour>\0mapping=1;sizeStrings=40;\0"),
            section(b"urn:a"),
            section(b"_:b"),
            section(b"urn:p"),
            section(b'"1"^^<urn:t>', b'\x82x"@en'),  # two bytes from the one before
            control(4, b"<http://purl.org/HDT/hdt#triplesBitmap>\0order=1;\0"),
            checked(b"\x01\x82", b"\x03"),  # each pair is the last of its subject
            checked(b"\x01\x83", b"\x06"),  # the first subject has two objects
            checked(b"\x01\x01\x82", b"\x03"),  # both predicates are number 1
            checked(b"\x01\x02\x83", b"\x2e"),  # objects 2, 3, 2
        )
    )
    assert [str(quad) for quad in read(data)[0]] == [
        '<urn:a> <urn:p> "1"^^<urn:t>',
        '<urn:a> <urn:p> "1x"@en',
        '_:b <urn:p> "1"^^<urn:t>',
    ]


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_written_comes_back(shape):
    triples = list(shape())
    quads, problems = read(written(triples))
    assert problems == []
    assert len(quads) == len(set(quads))
    assert set(quads) == {Quad(*triple) for triple in triples}


TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
NODES = st.one_of(
    st.from_regex(r"[a-z]{1,9}:[a-zé/-]{0,150}", fullmatch=True).map(NamedNode),
    st.from_regex(r"[a-z0-9]{1,4}", fullmatch=True).map(BlankNode),
)
LITERALS = st.one_of(
    TEXT.map(Literal),
    st.builds(lambda value, tag: Literal(value, language=tag), TEXT, st.sampled_from(["en", "de-1996"])),
    st.builds(lambda value: Literal(value, language="ar", direction=BaseDirection.RTL), TEXT),
    st.builds(lambda value: Literal(value, datatype=NamedNode("urn:t")), TEXT),
)
PREDICATES = st.sampled_from([NamedNode(f"urn:p{i}") for i in range(5)])


@settings(deadline=None)
@given(st.lists(st.tuples(NODES, PREDICATES, st.one_of(NODES, LITERALS)), max_size=60))
def test_any_graph_comes_back(triples):
    quads, problems = read(written(triples))
    assert problems == []
    assert set(quads) == {Quad(*triple) for triple in triples}


def test_the_graph_without_triples_comes_back():
    assert read(written([])) == ([], [])


def test_batches_are_small():
    document = Document(
        url="u:", stream=io.BytesIO(written(one_subject(5000))), media_type="application/vnd.hdt"
    )
    assert max(len(finding.quads) for finding in HdtAnalyser().analyse(document)) <= 1000


# What is damaged


@pytest.mark.parametrize("end", [0, 1, 4, 40, 300, 900, 1500, -1000, -100, -5, -1])
def test_a_file_that_ends_early_is_a_problem(end):
    _, [problem] = read((DATA / "hdt-cpp.hdt").read_bytes()[:end])
    assert problem.startswith("HDT is damaged: ")


def test_a_changed_byte_is_found_by_its_checksum():
    whole = (DATA / "hdt-cpp.hdt").read_bytes()
    header = whole.index(b"$HDT", 60)
    for place in range(header, len(whole), 7):
        changed = bytearray(whole)
        changed[place] ^= 0x10
        assert read(bytes(changed))[1], place


def test_random_bytes_behind_the_signature_never_raise():
    source = random.Random(5)
    for _ in range(50):
        assert read(b"$HDT\1" + source.randbytes(300))[0] == []


def test_bad_terms_cost_their_statements_only():
    good = written([(NamedNode("urn:a"), NamedNode("urn:p"), NamedNode("urn:b"))])
    strings = writer.front_coded([b"urn:b"])[0]
    broken = writer.front_coded([b"a b  "])[0]
    changed = good.replace(strings + crc32c(strings), broken + crc32c(broken))
    quads, [problem] = read(changed)
    assert quads == []
    assert not unsaid(problem, "IRI")


def test_a_limit_of_the_stream_passes_through():
    class Cut(io.BytesIO):
        def read(self, size=-1):
            raise LimitExceeded("enough")

    with pytest.raises(LimitExceeded, match="enough"):
        read(Cut())


# What is hostile


def forged(parts):
    """A file with these parts in place of the dictionary."""
    head = written([])
    return head[: head.index(b"$HDT\3")] + writer.control(3, writer.FOUR_SECTIONS, {}) + b"".join(parts)


def claims(*data):
    return b"".join(data) + crc8(b"".join(data))


@pytest.mark.parametrize(
    "lie",
    [
        [claims(b"\2", writer.vbyte(1 << 40), writer.vbyte(1 << 40), writer.vbyte(16))],
        [
            claims(b"\2", writer.vbyte(1), writer.vbyte(1 << 40), writer.vbyte(16)),
            claims(b"\1\x28", writer.vbyte(1 << 40)),
        ],
        [
            claims(b"\2", writer.vbyte(1 << 40), writer.vbyte(0), writer.vbyte(16)),
            *writer.log_array(np.array([0])),
            crc32c(b""),
        ],
        [b"\2" + b"\x7f" * 40],
    ],
    ids=["strings", "numbers", "strings in no bytes", "endless number"],
)
def test_a_terabyte_in_a_header_costs_nothing(lie):
    tracemalloc.start()
    quads, [problem] = read(forged(lie))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert quads == []
    assert problem.startswith("HDT is damaged: ")
    assert peak < MIB


def test_a_dictionary_that_unfolds_without_bound_is_refused():
    buffer = b"x" * MIB + b"\0" + (writer.vbyte(MIB) + b"\0") * 10_000
    section = [
        claims(b"\2", writer.vbyte(10_001), writer.vbyte(len(buffer)), writer.vbyte(1 << 30)),
        *writer.log_array(np.array([0, len(buffer)])),
        buffer,
        crc32c(buffer),
    ]
    quads, [problem] = read(forged(section), hdt_dictionary=50 * MIB)
    assert (quads, unsaid(problem, "HDT", 50 * MIB, "limit analyse.hdt_dictionary")) == ([], [])


def test_a_file_larger_than_the_limit_is_refused():
    assert read(written(one_subject(1000)), hdt_bytes=1000) == (
        [],
        ["HDT of more than 1000 bytes (limit analyse.hdt_bytes), not read"],
    )


@pytest.mark.parametrize(
    ("word", "other"),
    [(b"HDTv1", b"HDTv2"), (b"dictionaryFour", b"dictionaryFive"), (b"order=1", b"order=4")],
)
def test_what_is_not_known_is_named(word, other):
    data = written(one_subject(10))
    start = data.rindex(b"$HDT", 0, data.index(word))
    end = data.index(b"\0", data.index(b"\0", start) + 1) + 1
    control = data[start:end].replace(word, other)
    _, [problem] = read(data[:start] + control + crc16(control) + data[end + 2 :])
    assert "HDT is damaged: " in problem
    assert "read" in problem
