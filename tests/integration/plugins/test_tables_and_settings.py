"""A feature brings tables and settings: they come with its package, change with it, and go with it."""

import json
from contextlib import closing

import pytest

from tamias.database.connect import Database
from tamias.model.errors import ConfigError
from tests import commands
from tests.messages import unsaid

FEATURE = """
from typing import Annotated
from tamias.plugins import Feature
from tamias.settings import FeatureSettings, about

class NutSettings(FeatureSettings, frozen=True, kw_only=True):
    most: Annotated[int, about("nuts at most", ge=1)] = 3

    def refused(self):
        if self.most == 13:
            yield "most", "must be no unlucky number"

FEATURES = [
    Feature(name="nuts", about="nuts", module="nuts", tables=("nut",), schema="schema.sql",
            settings="nuts:NutSettings"),
]
"""
FIRST = "-- name: version_1\n-- Nuts.\nCREATE TABLE IF NOT EXISTS nut (nut int4 PRIMARY KEY);\n"
SECOND = "\n-- name: version_2\n-- What they weigh.\nALTER TABLE nut ADD COLUMN grams int4;\n"
RIGHTS = "\n-- name: rights\n-- Workers look at them.\nGRANT SELECT ON nut TO tamias_worker;\n"


@pytest.fixture
def package(tamias, tmp_path):
    """A folder with the package, as `pip install` would leave it, on the path of every command."""
    folder = tmp_path / "packages"
    about = folder / "nuts-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: nuts\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[tamias.features]\nnuts = nuts:FEATURES\n")
    (folder / "nuts").mkdir()
    (folder / "nuts" / "__init__.py").write_text(FEATURE)
    (folder / "nuts" / "schema.sql").write_text(FIRST)
    tamias.env["PYTHONPATH"] = str(folder)
    return folder / "nuts"


def config(tamias, *words):
    return commands.run(["config", "show", *words], env=tamias.env, capture_output=True, text=True)


def columns(tamias):
    """The columns of the table of nuts, as an installation without the package sees them."""
    asked = (
        b"SELECT attname::text FROM pg_attribute WHERE attrelid = to_regclass('tamias.nut') AND attnum > 0"
    )
    with closing(Database(tamias.data)) as database, closing(database.session()) as session:
        return [name for (name,) in session.fetch_all(asked)]


def test_tables_come_with_a_package_and_change_with_it(tamias, package, site):
    tamias.env.pop("PYTHONPATH")
    site.pages["/"] = b"<> <#is> <#here> ."
    assert tamias.crawl(site.url("/")).returncode == 0
    assert columns(tamias) == []
    tamias.env["PYTHONPATH"] = str(package.parent)
    assert tamias.run("stats").returncode == 0
    assert columns(tamias) == ["nut"]
    (package / "schema.sql").write_text(FIRST + SECOND + RIGHTS)
    for _ in range(2):
        assert tamias.run("stats").returncode == 0
        assert columns(tamias) == ["nut", "grams"]


def test_new_data_has_the_tables_of_all_steps(tamias, package, site):
    (package / "schema.sql").write_text(FIRST + SECOND + RIGHTS)
    site.pages["/"] = b"<> <#is> <#here> ."
    assert tamias.crawl(site.url("/")).returncode == 0
    assert columns(tamias) == ["nut", "grams"]


def test_settings_come_and_go_with_a_package(tamias, package):
    tamias.env["TAMIAS_NUTS__MOST"] = "7"
    shown = json.loads(config(tamias, "--json").stdout)
    assert shown["nuts.most"] == {"value": 7, "origin": "environment"}
    for value, sentence in (("0", "must be a whole number >= 1"), ("13", "must be no unlucky number")):
        tamias.env["TAMIAS_NUTS__MOST"] = value
        refused = config(tamias)
        assert (refused.returncode, f"nuts.most (environment): {sentence}" in refused.stderr) == (
            ConfigError.exit_code,
            True,
        ), refused.stderr
    tamias.env.pop("PYTHONPATH")
    assert not unsaid(config(tamias).stderr)


def test_without_alerts_there_are_neither_their_tables_nor_their_settings(tamias, site):
    tamias.env["TAMIAS_WITHOUT"] = "alerts"
    site.pages["/"] = b"<> <#is> <#here> ."
    assert tamias.crawl(site.url("/")).returncode == 0
    shown = json.loads(config(tamias, "--json").stdout)
    assert not [name for name in shown if name.startswith("alerts.")]
    assert "fetch.delay" in shown
