"""The examples of docs/python.md and of `examples/` run as they stand, against a small site."""

import importlib.util
import os
import re
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAMED = b'@prefix foaf: <http://xmlns.com/foaf/0.1/> . <#a> foaf:name "Ada" .'


@pytest.fixture
def example(site, reply):
    """A site with a table that has one row more with each request."""
    requests = count(1)

    def table(handler):
        rows = "".join(f"{each},row {each}\n" for each in range(1, next(requests) + 1))
        reply(200, f"id,name\n{rows}".encode(), Content_Type="text/csv")(handler)

    links = " ".join(f"<> <#to> <{site.url(path)}> ." for path in ("/data.ttl", "/other.ttl"))
    site.pages |= {"/": links.encode(), "/data.csv": table}
    site.pages |= dict.fromkeys(("/data.ttl", "/more.ttl", "/other.ttl"), NAMED)
    return site


def run(tamias, folder, *words, **variables):
    """A Python program as a user runs it, in a folder of its own."""
    given = {"TAMIAS_PERMIT__ALLOW_PRIVATE": "true", "TAMIAS_FETCH__DELAY": "0", "MPLBACKEND": "svg"}
    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env={**tamias.env, **given, **variables},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.processes
def test_the_page_runs_from_its_first_example_to_its_last(tamias, example, tmp_path):
    blocks = BLOCK.findall((ROOT / "docs" / "python.md").read_text())
    program = "\n".join(blocks).replace("https://example.org", example.url("").rstrip("/"))
    program = program.replace('host="example.org"', f'host="{example.address}"')
    printed = run(tamias, tmp_path / "page", "-c", program)
    assert len(blocks) == 7
    for expected in (
        "3 {'ok': 3} done",
        "Ada",
        "1,row 1",
        "version http",
        "unknown.csv is not in the archive",
    ):
        assert expected in printed


@pytest.mark.processes
def test_twenty_lines_crawl_archive_compare_and_plot(tamias, example, tmp_path):
    script = ROOT / "examples" / "crawl_and_plot.py"
    code = [line for line in script.read_text().splitlines() if line.strip() and not line.startswith('"""')]
    assert len(code) <= 20
    words = (script, example.url("/"), example.url("/data.csv"))
    assert run(tamias, tmp_path / "plot", *words) == "3 URLs, 4 statements\n"
    assert "1 rows added, 0 removed, 0 changed" in run(tamias, tmp_path / "plot", *words)
    assert "<svg" in (tmp_path / "plot" / "growth.svg").read_text()


@pytest.mark.skipif(not importlib.util.find_spec("dagster"), reason="dagster is not installed")
@pytest.mark.processes
def test_dagster_materializes_the_assets(tamias, example, tmp_path):
    program = (
        "import dagster, dagster_assets as it; "
        "done = dagster.materialize([it.crawled_site, it.watched_table]); "
        "made = done.asset_materializations_for_node('watched_table')[0]; "
        "print(done.success, made.metadata['rows_added'].value)"
    )
    variables = {"SITE": example.url("/"), "TABLE": example.url("/data.csv"), "DAGSTER_HOME": str(tmp_path)}
    path = os.pathsep.join([str(ROOT / "examples"), os.environ.get("PYTHONPATH", "")])
    assert "True 1" in run(tamias, tmp_path / "dagster", "-c", program, PYTHONPATH=path, **variables)
