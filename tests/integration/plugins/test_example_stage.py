"""The example of a stage, a commit hook and a table in a package of its own."""

import json
import shutil
from pathlib import Path
from urllib.request import urlopen

import pytest

EXAMPLE = Path(__file__).resolve().parents[3] / "examples/plugins/server-names"
PAGES = 3


@pytest.fixture
def package(tamias, tmp_path):
    """A folder with the package, as `pip install` would leave it, on the path of every command."""
    folder = tmp_path / "packages"
    about = folder / "tamias_server_names-1.0.dist-info"
    about.mkdir(parents=True)
    shutil.copytree(EXAMPLE / "server_names", folder / "server_names")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: tamias-server-names\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[tamias.features]\nserver-names = server_names:FEATURES\n")
    tamias.env["PYTHONPATH"] = str(folder)


@pytest.fixture
def pages(site):
    site.pages["/"] = b"".join(b"<> <#to> </%d> ." % number for number in range(1, PAGES))
    site.pages |= {f"/{number}": b"<> <#is> <#here> ." for number in range(1, PAGES)}
    return site


def test_a_stage_adds_records_that_a_hook_commits_with_the_visits(tamias, package, pages):
    assert tamias.crawl(pages.url("/")).returncode == 0
    with urlopen(pages.url("/")) as response:
        name = response.headers["Server"]
    rows = json.loads(tamias.run("server-names", "--json").stdout)
    assert rows == [{"name": name, "hosts": 1, "responses": PAGES}]


def test_a_feature_that_is_off_has_no_stage(tamias, package, pages):
    tamias.env["TAMIAS_WITHOUT"] = "server-names"
    assert tamias.crawl(pages.url("/")).returncode == 0
    del tamias.env["TAMIAS_WITHOUT"]
    assert json.loads(tamias.run("server-names", "--json").stdout) == []
