"""Settings: layers, origins, and errors that help."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tamias.features.alerts.settings import AlertsSettings
from tamias.model.errors import ConfigError
from tamias.settings import all_settings, resolve
from tests.messages import saying


def write(tmp_path, text):
    file = tmp_path / "tamias.toml"
    file.write_text(text)
    return file


def test_a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default(tmp_path):
    file = write(tmp_path, "[fetch]\ndelay = 2\nconcurrency = 7\n[crawl]\nretries = 1\n")
    environment = {"TAMIAS_FETCH__DELAY": "3", "TAMIAS_CRAWL__RETRIES": "5"}
    resolved = resolve(file, environment, {"fetch.delay": 4.0, "crawl.depth": None})
    settings, origins = resolved.settings, resolved.origins
    assert (settings.fetch.delay, settings.crawl.retries, settings.fetch.concurrency) == (4.0, 5, 7)
    assert origins["fetch.delay"] == "flag"
    assert origins["crawl.retries"] == "environment"
    assert origins["fetch.concurrency"] == f"file {file}"
    assert origins["crawl.depth"] == "default"


def test_a_preset_sets_what_nobody_else_sets(tmp_path):
    file = write(tmp_path, '[crawl]\npreset = "owler"\n[frontier]\nper_round = 5\n')
    resolved = resolve(file, {"TAMIAS_FETCH__DELAY": "3"})
    frontier = resolved.settings.frontier
    assert (frontier.round, frontier.per_round, frontier.queue) == (300.0, 5, "domain")
    assert resolved.settings.fetch.delay == 3.0
    assert resolved.origins["frontier.round"] == "preset owler"
    assert resolved.origins["frontier.per_round"] == f"file {file}"
    assert resolve(None, {}).settings.frontier.round == 0.0


def test_a_list_from_the_environment_is_split_at_commas():
    assert resolve(None, {"TAMIAS_FILTERS__SCHEMES": "http, ftp"}).settings.filters.schemes == ("http", "ftp")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[fetch]\ndelya = 1\n", "did you mean 'fetch.delay'"),
        ("[nonsense]\nx = 1\n", "there is no setting 'nonsense.x'"),
        ("[fetch]\ndelay = 'long'\n", r'fetch\.delay \(file .*\): .*"long"$'),
        ("[fetch]\ndelay = -1\n", r"fetch\.delay \(file .*\): .*0\.0.*-1$"),
        ("[filters]\nscope = 'moon'\n", r'any, host, domain, prefix.*"moon"$'),
        ("[crawl]\ndepth = 2.5\n", r"crawl\.depth \(file .*\): .*whole number.*2\.5$"),
        ("[permit]\nrobots = 'no'\n", r'permit\.robots .*true or false.*"no"$'),
        ("[filters]\nblocklists = '/a'\n", r'filters\.blocklists .*list.*"/a"$'),
        ("[fetch]\ncontact = 'ask me'\n", r'fetch\.contact .*URL.*"ask me"$'),
        ("delay = 1\n", "delay.* table"),
        ("[fetch\n", "is not TOML"),
        ("[frontier]\nbuckets = 3\n", "power of two"),
    ],
)
def test_a_wrong_file_is_named_in_one_sentence(tmp_path, text, told):
    with pytest.raises(ConfigError, match=told):
        resolve(write(tmp_path, text), {})


def test_an_unknown_variable_is_refused():
    with pytest.raises(ConfigError, match="TAMIAS_FETCH__DELY"):
        resolve(None, {"TAMIAS_FETCH__DELY": "1"})


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="cannot read"):
        resolve(tmp_path / "absent.toml", {})


def test_every_setting_says_what_it_does():
    assert all(setting.help for setting in all_settings())


def test_a_file_of_the_first_version_sets_what_it_set_then(tmp_path):
    """Except for `schedule.harvests`, which was `schedule.walks`."""
    file = Path(__file__).with_name("first_version.toml")
    written = {f"{table}.{name}": value for table, some in tomllib.loads(file.read_text()).items()
               for name, value in some.items()}  # fmt: skip
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TAMIAS_")}
    command = [sys.executable, "-m", "tamias", "config", "show", "--json", "--config", str(file)]
    shown = subprocess.run(command, env=clean, cwd=tmp_path, capture_output=True, text=True, check=True)
    settings = json.loads(shown.stdout)
    assert {key: settings[key]["value"] for key in written} == written
    assert {settings[key]["origin"] for key in written} == {f"file {file}"}
    defaults = {setting.key: setting.default for setting in all_settings()}
    same = {key for key, value in written.items() if defaults[key] == value}
    assert same <= {"filters.blocklists", "analyse.rules"}
    assert shown.stderr == ""


def test_credentials_in_the_configuration_are_read_beside_those_that_the_environment_names(tmp_path):
    file = tmp_path / "tamias.toml"
    file.write_text('[[credentials]]\nurl = "https://a.example/"\ntoken = "hush"\n')
    named = {"TAMIAS_FETCH__CREDENTIALS": "one.toml,two.toml"}
    assert resolve(file, named).settings.fetch.credentials == ("one.toml", "two.toml", str(file))
    assert resolve(file, {}).settings.fetch.credentials == (str(file),)
    assert resolve(file, {"TAMIAS_FETCH__CREDENTIALS": str(file)}).settings.fetch.credentials == (str(file),)
    file.write_text("")
    assert resolve(file, named).settings.fetch.credentials == ("one.toml", "two.toml")


def test_variables_of_credentials_are_no_settings_whatever_their_names():
    assert resolve(None, {"TAMIAS_CREDENTIAL_A__B": "hush"}).settings == resolve(None, {}).settings


def test_mail_without_a_mail_server_is_refused():
    with pytest.raises(ConfigError, check=saying("alerts.mail_to", "alerts.smtp")):
        resolve(environment={"TAMIAS_ALERTS__MAIL_TO": "a@example.org"})
    given = {"TAMIAS_ALERTS__MAIL_TO": "a@example.org", "TAMIAS_ALERTS__SMTP": "mail.example.org:587"}
    assert resolve(environment=given).settings.of_feature("alerts", AlertsSettings).mail_to == (
        "a@example.org",
    )


@pytest.mark.parametrize("quiet", ["0-24", "24-0", "7-7", "22-31"])
def test_quiet_hours_that_are_none_or_all_of_the_day_are_refused(quiet):
    with pytest.raises(ConfigError, check=saying("alerts.quiet")):
        resolve(environment={"TAMIAS_ALERTS__QUIET": quiet})


@pytest.mark.parametrize("quiet", ["", "22-7", "0-23", "20-24"])
def test_quiet_hours_that_leave_some_of_the_day_are_taken(quiet):
    assert (
        resolve(environment={"TAMIAS_ALERTS__QUIET": quiet})
        .settings.of_feature("alerts", AlertsSettings)
        .quiet
        == quiet
    )


def test_a_worker_does_not_wait_for_a_store_until_its_packs_are_taken_for_those_of_a_dead_one():
    with pytest.raises(ConfigError, match="1800"):
        resolve(None, {"TAMIAS_ARCHIVE__PATIENCE": "3601"})
