"""The example of a feature in a package of its own: a verb and a page."""

import json
import shutil
from pathlib import Path

import httpx
import pytest

from tests import commands

from .conftest import SECRET, Running, environment

EXAMPLE = Path(__file__).resolve().parents[3] / "examples/plugins/host-report"


@pytest.fixture
def packages(tmp_path):
    """A folder with the package, as `pip install` would leave it."""
    shutil.copytree(EXAMPLE / "host_report", tmp_path / "host_report")
    about = tmp_path / "tamias_host_report-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: tamias-host-report\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[tamias.features]\nhost-report = host_report:FEATURES\n")
    return tmp_path


def said(filled, packages, *words):
    env = environment(PYTHONPATH=str(packages))
    done = commands.run([*words, "--data", filled.data], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_package_adds_a_verb_and_a_page(filled, packages):
    (listed,) = (
        each
        for each in json.loads(said(filled, packages, "plugins", "--json"))
        if each["name"] == "host-report"
    )
    assert listed["parts"] == {"verbs": ["host-report"], "pages": ["host-report"]}
    rows = json.loads(said(filled, packages, "host-report", "--json"))
    wanted = filled.rows("SELECT host, count(*), sum(versions)::int8 FROM resource GROUP BY host")
    assert {tuple(row.values()) for row in rows} == set(wanted)
    running = Running(filled.data, "--no-crawl", PYTHONPATH=str(packages), TAMIAS_SECRET=SECRET)
    try:
        assert httpx.get(f"{running.address}/host-report.json").json()["hosts"] == rows
        page = httpx.get(f"{running.address}/host-report", headers={"Accept": "text/html"})
    finally:
        running.stop()
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert f"<td>{rows[0]['host']}</td>" in page.text
