"""The types of the installed package, as a user's own script meets them under `mypy --strict`."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tamias

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tests" / "unit" / "user_script.py"
WRONG = """
import tamias

number: int = tamias.Archive("x").versions("http://a.example/")[0].captured_at
"""


def checked(tmp_path: Path, script: str) -> tuple[int, str]:
    file = tmp_path / "script.py"
    file.write_text(script)
    cache = ROOT / ".mypy_cache"
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--cache-dir",
        str(cache),
        "--config-file=",
        str(file),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600)
    return done.returncode, done.stdout


def test_a_script_is_typed_throughout(tmp_path):
    assert checked(tmp_path, SCRIPT.read_text()) == (0, "Success: no issues found in 1 source file\n")


def test_the_script_uses_every_public_name():
    """`make release` checks the same script against the installed wheel."""
    nodes = [*ast.walk(ast.parse(SCRIPT.read_text()))]
    used = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    used |= {each.name for node in nodes if isinstance(node, ast.ImportFrom) for each in node.names}
    kinds = (tamias, tamias.Archive, tamias.Reading, tamias.RunningCrawl, tamias.aio, tamias.aio.AsyncArchive)
    names = {name for kind in kinds for name in getattr(kind, "__all__", dir(kind))}
    public = {name for name in names if not name.startswith("_")} | {"__version__"}
    assert public - used == set()


@pytest.mark.parametrize("module", [tamias.plugin, tamias.errors])
def test_every_name_of_a_public_module_is_there(module):
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


def test_it_is_quick_to_import():
    code = "import sys, tamias; print(sorted({'msgspec', 'click', 'pyoxigraph', 'psycopg'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_mistake_is_found(tmp_path):
    code, said = checked(tmp_path, WRONG)
    assert (code, "datetime" in said) == (1, True)
