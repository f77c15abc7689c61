"""The verbs of the foundation, as a user types them: output, one clear sentence on errors, exit codes."""

import json
import os
import socket
import subprocess
from importlib import import_module
from urllib.parse import urlencode

import pytest

from tamias.database.connect import Database
from tamias.plugins import KINDS, load_all, load_target, parts, verbs
from tests import commands
from tests.messages import unnamed, unsaid


@pytest.fixture
def tamias(tmp_path):
    """`tamias(*words)` runs the executable in an empty folder."""

    def run(*words, **environment):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("TAMIAS_")}
        return commands.run(
            [*words], cwd=tmp_path, env=clean | environment, text=True,
            capture_output=True, timeout=120, check=False,
        )  # fmt: skip

    return run


def nowhere():
    """An address on this machine where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/"


def one_sentence(result):
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("tamias: ")
    return lines[0]


@pytest.mark.parametrize("verb", ["status", "stats", "export"])
def test_a_verb_that_reads_says_when_there_is_no_data(tamias, tmp_path, verb):
    result = tamias(verb, "--data", "nowhere")
    assert result.returncode == 10
    assert not unsaid(one_sentence(result))
    assert not (tmp_path / "nowhere").exists()


def test_a_setting_that_does_not_exist_is_named_with_the_one_that_was_meant(tamias, tmp_path):
    (tmp_path / "tamias.toml").write_text("[fetch]\ndelya = 1\n")
    result = tamias("config", "show")
    assert result.returncode == 4
    assert not unsaid(one_sentence(result), "fetch.delay")


def test_config_show_tells_where_each_value_came_from(tamias, tmp_path):
    (tmp_path / "tamias.toml").write_text("[crawl]\nretries = 7\n")
    result = tamias("config", "show", "--json", TAMIAS_FETCH__DELAY="2.5")
    shown = json.loads(result.stdout)
    assert shown["fetch.delay"] == {"value": 2.5, "origin": "environment"}
    assert shown["crawl.retries"] == {"value": 7, "origin": "file tamias.toml"}
    assert shown["fetch.concurrency"]["origin"] == "default"


def test_every_part_of_every_feature_can_be_loaded():
    programs = {"keepers"}
    loaded = KINDS.keys() - programs
    assert {kind for kind in loaded if load_all(kind).keys() != parts(kind).keys()} == set()
    for name in (name for kind in programs for name in parts(kind).values()):
        assert import_module(name).__name__ == name
    assert all(load_target(verb.target).help for verb in verbs().values())


def test_doctor_finds_nothing_wrong_here(tamias):
    result = tamias("doctor", "--json")
    assert result.returncode == 0, result.stdout
    checks = {check["name"]: check for check in json.loads(result.stdout)}
    assert all(check["ok"] for check in checks.values())
    assert not unsaid(checks["database"]["told"])


def test_doctor_warns_of_a_user_with_more_rights_than_it_needs(tamias, tmp_path, administrator):
    url = "postgresql:///?" + urlencode(administrator)
    Database(tmp_path, url).close()
    result = tamias("doctor", "--db", url)
    assert unnamed(result.stdout, "MISSING: login", "superuser", "roles") == []


def test_doctor_says_what_is_wrong_with_a_database_that_refuses(tamias):
    result = tamias("doctor", "--db", "postgresql://nobody:hidden@127.0.0.1:1/none")
    assert result.returncode == 1
    assert "BAD  database" in result.stdout
    assert "hidden" not in result.stdout + result.stderr


def test_a_database_that_refuses_is_one_sentence(tamias):
    result = tamias("stats", "--db", "postgresql://nobody:hidden@127.0.0.1:1/none")
    assert result.returncode == 1
    assert "hidden" not in one_sentence(result)


def test_stats_and_status_of_a_fresh_crawl_add_up(tamias, tmp_path):
    words = ("crawl", nowhere(), "--allow-private", "--no-robots", "--data", "d")
    done = tamias(*words, TAMIAS_CRAWL__RETRY_WAIT="0.1")
    assert "1 failed" in done.stderr
    stats = json.loads(tamias("stats", "--json", "--data", "d").stdout)
    status = json.loads(tamias("status", "--once", "--json", "--data", "d").stdout)
    assert stats["corpus"]["outcomes"][0]["outcome"] == "failed"
    assert status["crawls"][0]["known"] == stats["frontier"]["crawls"][0]["known"] == 1
    checked = json.loads(tamias("check", "--json", "--data", "d").stdout)
    assert stats["corpus"]["segments"] == checked["looked"]["segments"] == 0


def test_wrong_usage_is_told_with_exit_code_2(tamias):
    assert tamias("crawl", "--depth", "much").returncode == 2
    assert tamias("fly").returncode == 2


def test_help_is_there_for_every_verb_and_quick_to_import(tamias):
    result = tamias("--help")
    assert result.returncode == 0
    assert not unsaid(result.stdout)
    assert tamias("crawl", "--help").returncode == 0


def test_a_data_directory_of_a_newer_version_is_refused(tamias, tmp_path):
    assert tamias("add", nowhere(), "--data", "d").returncode == 0
    from tamias.database.connect import Database

    database = Database(tmp_path / "d")
    session = database.session()
    session.transact(lambda cursor: cursor.execute("UPDATE meta SET schema_version = 9999"))
    session.close()
    database.close()
    result = tamias("stats", "--data", "d")
    assert result.returncode == 4
    assert "newer Tamias" in one_sentence(result)


def test_a_backup_folder_that_cannot_be_written_is_one_sentence(tamias, tmp_path):
    Database(tmp_path / "data").close()
    (tmp_path / "file").write_text("no folder")
    result = tamias("backup", "file", "--data", "data")
    assert result.returncode == 1
    assert not unsaid(one_sentence(result), part=2)
    result = tamias("backup", "file/in/it", "--data", "data")
    assert result.returncode == 1
    assert not unsaid(one_sentence(result), "file/in/it")


def test_a_full_disk_behind_the_output_is_one_sentence_and_exit_code_12(tmp_path):
    with open("/dev/full", "wb") as full:
        result = commands.run(
            ["config", "show"], cwd=tmp_path, stdout=full,
            stderr=subprocess.PIPE, text=True, timeout=120, check=False,
        )  # fmt: skip
    assert result.returncode == 12
    assert not unsaid(one_sentence(result))


@pytest.mark.parametrize("words", [("crawl", "--seeds"), ("add", "--file")])
def test_a_list_of_urls_may_come_through_a_pipe(tmp_path, words):
    result = commands.run(
        [*words, "-", "--data", "d"], cwd=tmp_path, text=True, timeout=120,
        input="# a list\n\nnonsense\n", capture_output=True, check=False,
    )  # fmt: skip
    assert result.returncode == (2 if "crawl" in words else 1)
    assert not unsaid(result.stderr, "3", "nonsense", "URL")


def test_a_url_that_the_rules_keep_out_is_not_said_to_be_visited(tamias, tmp_path):
    (tmp_path / "tamias.toml").write_text('[filters]\nexclude = ["secret"]\n')
    result = tamias("add", "https://a.example/secret.csv", "--data", "d")
    assert result.returncode == 1
    assert "not added: https://a.example/secret.csv: " in result.stderr
    assert result.stdout == "0 watched now, 0 already watched\n"


def test_reading_a_private_address_names_the_option_that_allows_it(tamias):
    result = tamias("read", nowhere())
    assert result.returncode == 1
    assert result.stderr.endswith("refused: loopback address 127.0.0.1; use --allow-private\n")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("", "the query is empty"),
        ("INSERT DATA { <a:a> <a:b> 1 }", "INSERT is an update, and 'tamias query' only reads"),
        ("# all\nPREFIX a: <a:>\nprefix : <b:> delete where { a:a ?p ?o }", "DELETE is an update"),
    ],
)
def test_what_is_no_query_is_refused_before_the_database_starts(tamias, query, said):
    result = tamias("query", query)
    assert result.returncode == 2
    assert said in one_sentence(result)
