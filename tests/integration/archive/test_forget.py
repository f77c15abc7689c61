"""`tamias forget`: a version goes out of a chain of differences or a group; what others have stays."""

import json

import pytest
import zstandard

from tamias.archive.reader.library import ArchiveReader
from tests.messages import unsaid

from .bytes_search import find_bytes
from .test_repack import history

URL = "http://data.example/a.csv"
OTHER = "http://other.example/b.csv"
MARK = b"Zaphod Beeblebrox, Magrathea 42, born on a planet that nobody can find on any map"


def with_mark(version):
    """The same with a row that no other version has."""
    lines = version.splitlines(keepends=True)
    return b"".join([*lines[:150], b"2026-01-01," + MARK + b",0\n", *lines[150:]])


@pytest.fixture
def versions():
    made = history(12)
    made[5] = with_mark(made[5])
    return made


@pytest.fixture
def kept(filled, versions):
    filled.put(URL, *versions, title="A table")
    filled.writer.close()
    return filled


@pytest.fixture
def forget(tamias):
    def run(*words):
        done = tamias("forget", *words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def read_versions(data, url=URL):
    with ArchiveReader(data) as archive:
        return {each.number: archive.get(url, version=each.number).bytes() for each in archive.versions(url)}


def without(versions, *numbers):
    return {number: body for number, body in enumerate(versions, 1) if number not in numbers}


@pytest.mark.parametrize("repacked", [False, True], ids=["deltas", "groups"])
def test_a_version_in_the_middle_goes_and_all_others_are_the_same(tamias, forget, kept, versions, repacked):
    if repacked:
        assert tamias("repack", "--after", "0", "--all").returncode == 0
    assert find_bytes(kept.data, MARK, versions)
    done = forget(URL, "--version", "6", "--reason", "personal data")
    assert (done["finished"], done["bodies"], done["remains"]) == (1, 1, [])
    assert done["recoded"] > 0
    assert read_versions(kept.data) == without(versions, 6)
    assert find_bytes(kept.data, MARK, versions) == []
    assert tamias("check").returncode == 0
    assert forget("--finish")["tombstones"] == 0


def test_a_body_that_another_resource_has_stays_for_that_one(tamias, forget, kept, versions):
    kept.put(OTHER, versions[5])
    kept.writer.close()
    done = forget(URL, "--version", "6")
    assert (done["finished"], done["bodies"], done["shared"]) == (1, 0, [OTHER])
    assert read_versions(kept.data) == without(versions, 6)
    assert read_versions(kept.data, OTHER) == {1: versions[5]}
    assert tamias("check").returncode == 0
    assert forget(OTHER)["bodies"] == 1
    assert find_bytes(kept.data, MARK, versions) == []


def test_check_finds_what_is_left_in_a_file(tamias, forget, kept, versions):
    forget(URL, "--version", "6")
    spool = kept.data / "spool"
    spool.mkdir(exist_ok=True)
    left = {"packed": zstandard.compress(versions[5]), "plain": b"..." + MARK + b"..."}
    for name, content in left.items():
        (spool / name).write_bytes(content)
    found = tamias("check")
    assert found.returncode == 1
    for name in left:
        assert not unsaid(found.stdout, URL, "6", name)
        (spool / name).unlink()
    (spool / "other").write_bytes(versions[4] + versions[6])
    assert tamias("check").returncode == 0


def test_check_finds_a_record_that_is_left_in_a_pack(tamias, forget, kept, versions):
    [(pack, start, length)] = kept.rows(
        "SELECT pack, start, length FROM version JOIN blob USING (sha256) WHERE number = 6"
    )
    path = kept.data / "blobs" / f"{pack}.pack"
    record = path.read_bytes()[start : start + length]
    forget(URL, "--version", "6")
    with path.open("r+b") as file:
        file.seek(start)
        file.write(record)
    found = tamias("check")
    assert found.returncode == 1
    assert f"BAD  forgotten {URL} version 6: pack {pack} has it at byte {start}" in found.stdout


def test_what_is_under_way_is_finished_by_check_repair(tamias, kept, versions):
    kept.run(
        "INSERT INTO forgotten (resource, url, number, last_number, reason, by_whom, at, blocked)"
        " SELECT resource, %b, 6, 12, 'r', 'me', captured_at, false FROM version WHERE number = 6",
        URL,
    )
    assert "forgotten on" in tamias("get", URL, "--version", "6").stderr
    found = tamias("check")
    assert found.returncode == 1
    assert not unsaid(found.stdout)
    assert tamias("check", "--repair").returncode == 0
    assert read_versions(kept.data) == without(versions, 6)
    assert find_bytes(kept.data, MARK, versions) == []


def test_a_dry_run_says_how_much_and_removes_nothing(tamias, forget, kept, versions):
    told = forget(URL, "--dry-run")["targets"][0]
    assert (told["versions"], told["bytes"]) == (12, sum(map(len, versions)))
    assert 0 < told["stored_bytes"] < told["bytes"]
    assert read_versions(kept.data) == without(versions)


def test_a_misspelt_url_is_said_to_have_had_nothing(tamias, forget, kept):
    misspelt = URL.replace(".csv", ".cvs")
    assert forget(misspelt)["not_stored"] == [misspelt]
    again = tamias("forget", misspelt)
    assert not unsaid(again.stdout, misspelt)
    lifted = tamias("forget", misspelt, "--lift").stdout.splitlines()
    assert len(lifted) == 1, lifted
    assert forget(URL)["not_stored"] == []


def test_rules_keep_the_last_versions_and_a_trial_says_how_much(tamias, forget, kept, versions, tmp_path):
    (tmp_path / "tamias.toml").write_text('[archive]\nkeep = "last:3"\n')
    kept.put(OTHER, *versions[:2])
    kept.writer.close()
    trial = forget("--by-rules", "--dry-run")
    assert trial == {
        "resources": 1,
        "versions": 9,
        "bytes": sum(map(len, versions[:9])),
        "captures": 0,
        "capture_bytes": 0,
    }
    assert read_versions(kept.data) == without(versions)
    assert forget("--by-rules")["finished"] == 9
    assert read_versions(kept.data) == without(versions, *range(1, 10))
    assert read_versions(kept.data, OTHER) == without(versions[:2])
    assert tamias("check").returncode == 0
    assert "retention rule: keep last:3" in tamias("get", URL, "--version", "1").stderr
    assert forget("--by-rules", "--dry-run")["versions"] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Name URLs"),
        ([URL, "--finish"], "Name URLs"),
        ([URL, "--version", "99"], "has no version 99"),
        ([URL, "--lift"], "not blocked"),
        ([URL, OTHER, "--version", "1"], "is for one URL"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(tamias, kept, words, said):
    done = tamias("forget", *words)
    assert done.returncode == 2
    assert said in done.stderr
