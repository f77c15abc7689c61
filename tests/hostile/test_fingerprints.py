"""What the archive compares of a document is bounded too: a chain of blank nodes is mere text."""

import pytest

from tamias.content.formats import Form
from tamias.features.archive.canonical.content_digest import Stored, content_digest


def turtle(depth):
    return (
        b"<http://e.test/s> <http://e.test/p> "
        + b"[ <http://e.test/p> " * depth
        + b"1"
        + b"]" * depth
        + b" ."
    )


@pytest.mark.parametrize(("depth", "known"), [(20, True), (100_000, False)])
def test_only_what_is_not_nested_too_deep_is_compared_as_a_graph(tmp_path, depth, known):
    file = tmp_path / "nested.ttl"
    file.write_bytes(turtle(depth))
    form = content_digest(Stored(source=file, media_type="text/turtle")).form
    assert form is (Form.STATEMENTS if known else Form.TEXT)


def test_a_term_larger_than_the_parsers_buffer_is_compared_as_bytes(tmp_path):
    file = tmp_path / "long.nt"
    file.write_bytes(b'<http://e.test/s> <http://e.test/p> "' + b"x" * (17 << 20) + b'" .\n')
    assert content_digest(Stored(source=file, media_type="application/n-triples")) is None
