"""The page on the papers names tests that exist."""

import re
from pathlib import Path

TESTS = Path(__file__).parent.parent
PAGE = TESTS.parent / "docs" / "papers.md"
NAMED = re.compile(r"`((?:unit|integration|interop|conformance)/[^`:]+)(?:::(\w+))?`")


def test_every_test_that_the_page_names_exists():
    named = NAMED.findall(PAGE.read_text())
    assert len(named) > 40
    for path, name in named:
        assert (TESTS / path).exists(), path
        assert not name or f"def {name}(" in (TESTS / path).read_text(), f"{path}::{name}"
