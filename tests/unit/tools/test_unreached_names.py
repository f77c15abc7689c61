"""The check of `make check` that finds what only tests reach."""

import runpy
from pathlib import Path

TOOL = runpy.run_path(str(Path(__file__).parents[3] / "tools" / "unreached_names.py"))

ROOM = """
from tamias.other import used_elsewhere

def planted():
    return planted

def used_here():
    return 1

def named_by_entry_point():
    return used_here() + used_elsewhere()

@register
def registered():
    pass

class Worker:
    def planted_method(self):
        self.called()

    def called(self):
        pass
"""
OTHER = """
def used_elsewhere():
    return Worker

def in_a_template():
    pass
"""
PROJECT = """
[project.entry-points."tamias.filters"]
one = "tamias.room:named_by_entry_point"
"""


def test_what_nothing_reaches_is_found_and_nothing_else(tmp_path):
    product = tmp_path / "tamias"
    product.mkdir()
    (product / "room.py").write_text(ROOM)
    (product / "other.py").write_text(OTHER)
    (product / "page.html").write_text("{{ in_a_template() }}")
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    found = list(TOOL["unreached"](product, tmp_path / "pyproject.toml"))
    assert found == ["tamias.room.planted", "tamias.room.Worker.planted_method"]
