"""What a copy of a dataset says of resources is compared with what their documents say, as graphs."""

from collections import Counter

import pytest

from tamias.crawl.commit.bulk_copies import MOST_BLANK, SubjectIndex, statements_about

A, B = "http://a.example/a", "http://a.example/b"


def lines(*triples, graph="http://g.example/"):
    return "".join(f"{each} <{graph}> .\n" for each in triples).encode()


def about(data, *uris, piece=7):
    pieces = [data[start : start + piece] for start in range(0, len(data), piece)]
    return statements_about(lambda: pieces, uris)


def tree(uri, label, value="1"):
    return (
        f"<{uri}> <urn:p> _:{label}1",
        f"_:{label}1 <urn:p> _:{label}2",
        f'_:{label}2 <urn:p> "{value}"',
    )


def test_labels_graphs_and_order_do_not_count():
    document = lines(*tree(A, "x"), f'<{A}#me> <urn:q> "2"@en')
    copy = lines(
        *reversed([*tree(A, "y"), f'<{A}#me> <urn:q> "2"@en']), *tree(B, "z"), graph="http://h.example/"
    )
    assert about(copy, A, B)[A] == about(document, A)[A]
    assert about(document, A)[A].total() == 4


def test_resources_are_told_apart_by_their_whole_address():
    assert about(lines(f'<{A}b> <urn:p> "no"', f'<{A}> <urn:p> "yes"'), A)[A] == Counter(
        {f'<{A}> <urn:p> "yes"'.encode(): 1}
    )


@pytest.mark.parametrize("size", [1, 1000])
def test_another_value_behind_blank_nodes_is_another_statement(size):
    document, copy = (about(lines(*tree(A, "x", value)), A, piece=size)[A] for value in "12")
    assert (document & copy).total() < document.total() == copy.total()


def test_a_ring_of_blank_nodes_ends():
    ring = (f"<{A}> <urn:p> _:a", "_:a <urn:p> _:b", "_:b <urn:p> _:a")
    assert about(lines(*ring), A)[A].total() == 3


def test_with_too_many_blank_nodes_none_counts():
    many = [f"<{A}> <urn:p> _:n{number}" for number in range(MOST_BLANK + 1)]
    assert about(lines(f"<{A}> <urn:p> <urn:o>", *many), A, piece=10_000)[A] == Counter(
        {f"<{A}> <urn:p> <urn:o>".encode(): 1}
    )


def test_an_encoded_address_is_found_as_an_iri():
    uri = "http://a.example/caf%C3%A9"
    data = lines('<http://a.example/café> <urn:p> "1"')
    index = SubjectIndex([data])
    assert [each in index for each in (uri, A)] == [True, False]
    assert about(data, uri)[uri].total() == 1


def test_subjects_of_many_runs_are_found_with_and_without_fragments(monkeypatch):
    monkeypatch.setattr("tamias.crawl.commit.bulk_copies.RUN", 10)
    data = lines(*(f'<http://a.example/{number}{"#it" * (number % 2)}> <urn:p> "1"' for number in range(500)))
    index = SubjectIndex(data[start : start + 700] for start in range(0, len(data), 700))
    assert all(f"http://a.example/{number}" in index for number in range(500))
    assert not any(f"http://a.example/{number}" in index for number in range(500, 1000))
