"""The types of the installed package, as a user's own script meets them under `mypy --strict`."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
from collections.abc import Iterator
from datetime import datetime

import tamias


def newest(place: str) -> Iterator[tuple[str, datetime, int, str]]:
    with tamias.Archive(place) as archive:
        for resource in archive.resources(host="example.org"):
            content = archive.get(resource.url, at=datetime.now())
            yield resource.url, content.version.captured_at, len(content.bytes()), content.text()
            change = archive.diff(resource.url, 1, 2, key="id")
            print(change.added + change.removed, content.table().columns, resource.added_at.year)


reading: tamias.Reading = tamias.read(b"<a> <b> <c> .", media_type="text/turtle")
subjects: list[str] = [str(quad.subject) for quad in reading.quads]
links: list[str] = reading.links
print(tamias.__version__.split("."), reading.media_type, [each.what for each in reading.problems])
"""
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
    assert checked(tmp_path, SCRIPT) == (0, "Success: no issues found in 1 source file\n")


def test_a_mistake_is_found(tmp_path):
    code, said = checked(tmp_path, WRONG)
    assert (code, "datetime" in said) == (1, True)
