"""What the archive compares of a document is bounded too: a chain of blank nodes has no fingerprint."""

import pytest

from tamias.archive.versions.fingerprints import fingerprint


def turtle(depth):
    return (
        b"<http://e.test/s> <http://e.test/p> "
        + b"[ <http://e.test/p> " * depth
        + b"1"
        + b"]" * depth
        + b" ."
    )


@pytest.mark.parametrize(("depth", "known"), [(20, True), (100_000, False)])
def test_only_what_is_not_nested_too_deep_has_a_fingerprint(tmp_path, depth, known):
    file = tmp_path / "nested.ttl"
    file.write_bytes(turtle(depth))
    assert (fingerprint(file, "text/turtle") is not None) is known


def test_a_term_larger_than_the_parsers_buffer_has_no_fingerprint(tmp_path):
    file = tmp_path / "long.nt"
    file.write_bytes(b'<http://e.test/s> <http://e.test/p> "' + b"x" * (17 << 20) + b'" .\n')
    assert fingerprint(file, "application/n-triples") is None
