import pytest

from tamias.sinks.graphs import NoQuad, SortedGraphs, whole_lines


def quad(number, graph):
    return f'<http://e/s{number}> <http://e/p> "<http://e/x> .\\n {number}" <{graph}> .\n'.encode()


def triple(number):
    return f'<http://e/s{number}> <http://e/p> "<http://e/x> .\\n {number}" .\n'.encode()


def sorted_graphs(*chunks):
    with SortedGraphs(chunks) as graphs:
        return {name: b"".join(graphs.triples(name)) for name in graphs.names}


def test_a_document_with_one_graph_is_one_graph():
    assert sorted_graphs(quad(1, "http://e/g") + quad(2, "http://e/g")) == {
        "http://e/g": triple(1) + triple(2)
    }


def test_interleaved_graphs_are_sorted_apart():
    text = b"".join(quad(number, f"http://e/g{number % 3}") for number in range(30))
    assert sorted_graphs(text) == {
        f"http://e/g{rest}": b"".join(triple(number) for number in range(30) if number % 3 == rest)
        for rest in range(3)
    }


def test_chunks_may_be_cut_anywhere():
    text = b"".join(quad(number, f"http://e/g{number % 2}") for number in range(10))
    assert sorted_graphs(*(text[at : at + 7] for at in range(0, len(text), 7))) == sorted_graphs(text)


def test_a_graph_larger_than_memory_is_given_out_in_whole_lines():
    text = b"".join(quad(number, "http://e/g") for number in range(200_000))
    with SortedGraphs([text]) as graphs:
        pieces = list(graphs.triples("http://e/g"))
    assert all(piece.endswith(b" .\n") for piece in pieces)
    assert b"".join(pieces).count(b"\n") == 200_000


def test_a_graph_name_may_hold_any_letter():
    assert list(sorted_graphs(quad(1, "http://e/Ä/日本"))) == ["http://e/Ä/日本"]


def test_a_line_that_is_no_quad_is_told():
    with pytest.raises(NoQuad, match="nonsense"):
        SortedGraphs([quad(1, "http://e/g") + b"nonsense\n"])


def test_an_empty_document_has_no_graphs():
    assert sorted_graphs() == {}


def test_whole_lines_are_the_same_bytes():
    assert list(whole_lines([b"a", b"b\nc", b"", b"\n", b"d"])) == [b"ab\n", b"c\n", b"d"]
