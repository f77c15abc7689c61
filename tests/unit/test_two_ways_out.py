"""Nothing but the gate of the crawl and the service client can send a request: the linters see to it."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
BIN = Path(sys.executable).parent
OTHER_WAYS = {
    "crawl/visit/scratch_curl.py": "import pycurl\n",
    "seeds/scratch_socket.py": "def look_up():\n    import socket\n    return socket.getaddrinfo\n",
    "archive/scratch_client.py": "from httpx import Client\n",
    "archive/scratch_benchmark.py": "from benchmarks.measuring import ports\n",
    "crawl/scratch_fetcher.py": "from tamias.fetch.http import HttpFetcher\n",
}
PARTS = ("import http.client", "from urllib.request import urlopen", "from asyncio import open_connection")


def contracts():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return settings["tool"]["importlinter"]["contracts"]


def test_a_module_that_would_open_a_connection_by_itself_breaks_a_contract(tmp_path):
    shutil.copytree(ROOT / "src" / "tamias", tmp_path / "src" / "tamias", ignore=lambda folder, names: [
        name for name in names if not name.endswith(".py") and not (Path(folder) / name).is_dir()
    ])  # fmt: skip
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for path, text in OTHER_WAYS.items():
        (tmp_path / "src" / "tamias" / path).write_text(f'"""A scratch."""\n\n{text}', encoding="utf-8")
    done = subprocess.run(
        [BIN / "lint-imports", "--config", tmp_path / "pyproject.toml", "--no-cache"],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
    )
    assert done.returncode == 1, done.stdout + done.stderr
    for path in OTHER_WAYS:
        assert "tamias." + path.removesuffix(".py").replace("/", ".") in done.stdout


@pytest.mark.parametrize("line", PARTS)
def test_the_parts_of_packages_that_open_connections_are_banned(line):
    done = subprocess.run(
        [BIN / "ruff", "check", "--select", "TID251", "--stdin-filename", "src/tamias/crawl/scratch.py", "-"],
        check=False,
        capture_output=True,
        text=True,
        input=f"{line}\n",
        cwd=ROOT,
    )
    assert "TID251" in done.stdout, done.stdout + done.stderr


def test_no_part_of_tamias_is_left_out_of_the_contract():
    (contract,) = [each for each in contracts() if each["name"].startswith("Nobody else opens")]
    held = {name.removeprefix("tamias.") for name in contract["source_modules"]}
    package = ROOT / "src" / "tamias"
    there = {path.stem for path in [*package.glob("*.py"), *(each.parent for each in package.glob("*/*.py"))]}
    assert there - held == {"__init__", "__main__", "fetch", "service_client"}
