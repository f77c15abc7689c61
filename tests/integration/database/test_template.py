"""New data directories are copies of a ready-made cluster, which holds no secret and must be whole."""

import os
import shutil
from contextlib import closing

import pytest

from tamias.content.zstd import zstd
from tamias.database.connect import Database
from tamias.database.embedded_server import wait_until_unused
from tamias.features.embedded.server import newest

OIDS = """
SELECT relname FROM pg_class WHERE relnamespace = 'tamias'::regnamespace AND oid < 16384
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Where templates are kept for this test."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder / "tamias"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A cache and the first data directory, which left its template there."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        Database(folder / "first").close()
        wait_until_unused(folder / "first")
    return folder


@pytest.fixture
def template(cache, made, tmp_path):
    """The template that the first data directory left behind, and that directory."""
    for name in ("cache", "first"):
        shutil.copytree(made / name, tmp_path / name)
    [template] = cache.iterdir()
    return template


def schema(user):
    columns = "SELECT table_name, column_name, data_type FROM information_schema.columns"
    return user.sql(f"{columns} WHERE table_schema = 'tamias' ORDER BY 1, 2")


def test_a_copy_is_like_the_cluster_that_initdb_made(template, place_at, tmp_path):
    before = template.stat().st_ino
    copied, first = place_at(tmp_path / "copied").user(), place_at(tmp_path / "first").user()
    assert template.stat().st_ino == before
    assert schema(copied) == schema(first) != []
    assert copied.sql("SELECT schema_version, buckets FROM meta") == first.sql(
        "SELECT schema_version, buckets FROM meta"
    )


def test_tables_are_not_numbered_as_the_systems_own(template, place_at, tmp_path):
    """Such tables would be left out of an upgrade of PostgreSQL."""
    assert place_at(tmp_path / "copied").user().sql(OIDS.replace("\n", " ")) == []


def test_there_is_no_secret_in_a_template(template, tmp_path):
    content = zstd.decompress(template.read_bytes())
    password = (tmp_path / "first" / "pg" / "password").read_text().strip().rpartition(":")[2]
    assert password.encode() not in content
    assert b"SCRAM-SHA-256$" not in content
    assert template.stat().st_mode & 0o077 == 0
    assert template.parent.stat().st_mode & 0o077 == 0


def test_each_copy_has_a_password_of_its_own(template, place_at, tmp_path):
    place_at(tmp_path / "copied").user()
    words = {(tmp_path / name / "pg" / "password").read_text() for name in ("first", "copied")}
    assert len(words) == 2


@pytest.mark.parametrize("damage", ["cut", "garbage", "empty", "foreign"])
def test_a_template_that_cannot_be_trusted_is_passed_over(template, place_at, tmp_path, damage):
    whole = template.read_bytes()
    if damage == "foreign":
        if os.geteuid() != 0:
            pytest.skip("only root can give a file away")
        os.chown(template, 65534, 65534)
    else:
        template.write_bytes({"cut": whole[: len(whole) // 2], "garbage": b"?" * 1000, "empty": b""}[damage])
    user = place_at(tmp_path / "copied").user()
    assert user.opened == "ready"
    assert user.sql("SELECT count(*) FROM url") == [[0]]


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(cache, place_at, tmp_path):
    cache.parent.write_text("not a folder")
    assert place_at(tmp_path / "data").user().opened == "ready"


def test_the_number_of_buckets_can_be_chosen_in_a_copy(template, tmp_path):
    with (
        closing(Database(tmp_path / "many", buckets=8)) as database,
        closing(database.session()) as session,
    ):
        row = session.transact(lambda cursor: cursor.execute("SELECT buckets FROM meta").fetchone())
    wait_until_unused(tmp_path / "many")
    assert row == (8,)


def test_programs_that_are_only_the_server_and_initdb_make_the_same_schema(
    template, place_at, tmp_path, monkeypatch
):
    wanted = schema(place_at(tmp_path / "first").user())
    few = tmp_path / "bin"
    few.mkdir()
    for name in ("postgres", "initdb"):
        (few / name).symlink_to(newest().program(name))
    monkeypatch.setenv("TAMIAS_PG_BIN", str(few))
    assert schema(place_at(tmp_path / "other").user()) == wanted != []
