"""The check for class names that stand for two things."""

import runpy
from pathlib import Path

import pytest

TOOL = runpy.run_path(str(Path(__file__).parents[3] / "tools" / "repeated_class_names.py"))


@pytest.fixture
def sources(tmp_path):
    (tmp_path / "a.py").write_text("class Page:\n    class _Part: ...\n", encoding="utf-8")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c.py").write_text("class Page: ...\nclass Other: ...\n", encoding="utf-8")
    (tmp_path / "d.py").write_text("def made():\n    class _Part: ...\n", encoding="utf-8")
    return tmp_path


def test_a_name_that_exists_twice_is_found_with_its_files(sources, capsys):
    assert TOOL["main"](sources) == 1
    assert capsys.readouterr().out == (
        "class Page exists 2 times, give one another name: a.py, b/c.py\n"
        "class _Part exists 2 times, give one another name: a.py, d.py\n"
    )


def test_our_own_sources_repeat_no_name():
    assert TOOL["main"]() == 0
