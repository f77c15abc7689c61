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
    assert TOOL["main"](sources, {"_Part": 2}) == 1
    told = "class Page exists 2 times, give one another name: a.py, b/c.py\n"
    assert capsys.readouterr().out == told


def test_an_allowed_name_may_not_exist_once_more(sources, capsys):
    (sources / "e.py").write_text("class Page: ...\n", encoding="utf-8")
    assert TOOL["main"](sources, {"_Part": 2, "Page": 2}) == 1
    assert "class Page exists 3 times" in capsys.readouterr().out


def test_names_that_are_used_up_are_to_be_taken_off_the_list(sources, capsys):
    assert TOOL["main"](sources, {"_Part": 3, "Page": 2, "Gone": 2}) == 0
    assert capsys.readouterr().out == "lower ALLOWED in tools/repeated_class_names.py: Gone (1), _Part (2)\n"


def test_our_own_sources_repeat_no_name_but_the_allowed():
    assert TOOL["main"]() == 0
