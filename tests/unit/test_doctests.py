"""What the documentation of functions shows is what they do."""

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {"src/tamias": "src", "benchmarks": ".", "tests": "."}
SHOWN = re.compile(r"^ *>>> ", re.MULTILINE)


def modules():
    """The names of all modules with an example."""
    for folder, root in FOLDERS.items():
        for file in sorted((ROOT / folder).rglob("*.py")):
            if SHOWN.search(file.read_text(encoding="utf-8")):
                yield ".".join(file.relative_to(ROOT / root).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("name", list(modules()))
def test_examples(name):
    said = []
    runner = doctest.DocTestRunner()
    for test in doctest.DocTestFinder(exclude_empty=True).find(import_module(name)):
        runner.run(test, out=said.append)
    assert runner.summarize(verbose=False).attempted > 0
    assert said == []
