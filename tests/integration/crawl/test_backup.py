"""A backup of a live archive comes back with every byte, and a damaged one is told."""

import hashlib
import json
import shutil
import signal
import time
from contextlib import closing

import pytest
import zstandard

from tamias.database.connect import Database
from tamias.database.migrate import FIRST, LAST_TO_UPGRADE, migrations
from tamias.features.backup import backup as taking
from tamias.features.backup.backup import BackupFolder
from tests.integration.conftest import Site, Tamias

RESOURCES = 30


def table(number, version):
    return "".join(["id,value\n", *(f"{row},{row * version + number}\n" for row in range(50))]).encode()


@pytest.fixture(scope="module")
def shared_site():
    with closing(Site("127.0.0.1")) as site:
        yield site


@pytest.fixture(scope="module")
def crawled_once(shared_site, made_once, tmp_path_factory):
    """A data directory to be copied: tables under watch and a small graph, both crawled, with WARC files."""
    tamias, site = Tamias(tmp_path_factory.mktemp("crawled") / "data"), shared_site
    shutil.copytree(made_once, tamias.data)
    tamias.hold_server()
    site.pages |= {f"/{number}.csv": table(number, 1) for number in range(RESOURCES)}
    site.pages["/graph"] = "".join(f'<#{n}> <#says> "{n}" .\n' for n in range(100)).encode()
    assert tamias.run("add", *(site.url(f"/{n}.csv") for n in range(RESOURCES))).returncode == 0
    assert tamias.crawl("--recrawl").returncode == 0
    assert tamias.crawl(site.url("/graph"), "--depth", "0", "--sink", "warc").returncode == 0
    backup(tamias, tamias.data.parent)
    tamias.end()
    return tamias.data


@pytest.fixture
def site(shared_site):
    """The site of the archive; what a test changes on it is as before afterwards."""
    before = dict(shared_site.pages)
    shared_site.log.clear()
    yield shared_site
    shared_site.pages = before


@pytest.fixture
def archive(tamias_at, crawled_once):
    """A copy of its own."""
    tamias = tamias_at("data")
    shutil.copytree(crawled_once, tamias.data)
    tamias.hold_server()
    return tamias


@pytest.fixture
def saved(crawled_once, tmp_path):
    """A copy of its backup."""
    shutil.copytree(crawled_once.parent / "backup", tmp_path / "backup")
    return tmp_path / "backup"


@pytest.fixture
def restored(tamias_at, tmp_path):
    def restore(*words):
        copy = tamias_at("restored")
        done = copy.run("restore", str(tmp_path / "backup"), *words)
        assert done.returncode == 0, done.stderr
        copy.hold_server()
        return copy

    return restore


def backup(archive, tmp_path):
    done = archive.run("backup", str(tmp_path / "backup"), "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def versions(archive, url):
    return json.loads(archive.run("versions", url, "--json").stdout)


def test_every_byte_comes_back_into_an_empty_place_and_the_archive_goes_on(archive, restored, site, tmp_path):
    strategy = tmp_path / "focus.sql"
    strategy.write_text("CREATE FUNCTION score_url(url text) RETURNS float8 LANGUAGE sql AS 'SELECT 0.75'")
    assert archive.run("strategy apply", str(strategy)).returncode == 0
    backup(archive, tmp_path)
    copy = restored()
    assert copy.run("check").returncode == 0
    assert copy.quads() == archive.quads()
    for number in range(0, RESOURCES, 7):
        url = site.url(f"/{number}.csv")
        assert versions(copy, url) == versions(archive, url)
        assert copy.run("get", url).stdout.encode() == table(number, 1)
    warcs = [each.run("export", "--format", "warc", "-o", str(tmp_path / "w")) for each in (archive, copy)]
    assert [each.returncode for each in warcs] == [0, 0]
    done = copy.run("strategy test", "http://example.org/", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["score"] == 0.75
    site.pages["/0.csv"] = table(0, 2)
    site.pages["/new"] = b'<#new> <#says> "new" .\n'
    assert copy.crawl("--recrawl", site.url("/0.csv")).returncode == 0
    assert copy.crawl(site.url("/new"), "--depth", "0").returncode == 0
    assert len(versions(copy, site.url("/0.csv"))) == 2
    assert any('"new"' in quad for quad in copy.quads())
    assert copy.run("check").returncode == 0


def test_a_second_snapshot_copies_only_what_is_new(archive, restored, site, tmp_path):
    first = backup(archive, tmp_path)
    assert first["new_bytes"] == first["bytes"] > 0
    time.sleep(1.1)
    assert backup(archive, tmp_path)["new_bytes"] == 0
    site.pages["/0.csv"] = table(0, 3)
    assert archive.crawl("--recrawl", site.url("/0.csv")).returncode == 0
    time.sleep(1.1)
    third = backup(archive, tmp_path)
    assert 0 < third["new_bytes"] < third["bytes"]
    old = restored("--snapshot", first["name"])
    assert len(versions(old, site.url("/0.csv"))) == 1
    assert old.run("check").returncode == 0


def test_a_snapshot_of_a_crawl_under_way_is_consistent(fresh, tamias_at, site, tmp_path):
    live = fresh("live")
    for number in range(200):
        links = f"<> <#next> </{number * 2 + 1}>, </{number * 2 + 2}> .\n"
        site.pages[f"/{number}"] = links.encode()
    crawl = live.start("crawl", "--allow-private", "--delay", "0.05", "--sink", "archive", site.url("/0"))
    live.wait_until(lambda: len(site.log) > 60)
    backup(live, tmp_path)
    assert crawl.poll() is None, "the crawl should still have been running"
    crawl.send_signal(signal.SIGINT)
    crawl.wait(timeout=60)
    copy = tamias_at("copy")
    assert copy.run("restore", str(tmp_path / "backup")).returncode == 0
    copy.hold_server()
    assert copy.run("check").returncode == 0
    assert copy.crawl("--sink", "archive").returncode == 0
    assert len(copy.quads()) == 400
    assert copy.run("check").returncode == 0


def test_a_flipped_bit_in_a_backup_is_named(saved, tamias_at):
    pack = next((saved / "files" / "blobs").iterdir())
    content = bytearray(pack.read_bytes())
    content[len(content) // 2] ^= 1
    pack.write_bytes(content)
    copy = tamias_at("damaged")
    done = copy.run("restore", str(saved))
    assert done.returncode == 1
    assert str(pack) in done.stderr


def test_a_backup_that_is_killed_leaves_the_earlier_one(archive, restored, kill, tmp_path):
    first = backup(archive, tmp_path)
    for wait in (0.2, 0.4, 0.6):
        process = archive.start("backup", str(tmp_path / "backup"))
        time.sleep(wait)
        kill(process.pid)
        process.wait()
    names = BackupFolder(tmp_path / "backup").names()
    assert names[0] == first["name"]
    assert restored("--snapshot", first["name"]).run("check").returncode == 0


def test_a_backup_that_was_cut_off_goes_on_with_the_next_file(archive, restored, tmp_path, monkeypatch):
    saved, idle, save_file = [], [], taking.save_file

    def save(place, file, known):
        if len(saved) == 2:
            raise ConnectionAbortedError
        saved.append(save_file(place, file, known))
        # No transaction is open while files are copied: it would hold up the database's cleaning.
        idle.append(
            session.fetch_one(b"SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in tr%'")
        )
        return saved[-1]

    folder = tmp_path / "backup"
    with closing(Database(archive.data)) as database, closing(database.session()) as session:
        with monkeypatch.context() as patch:
            patch.setattr(taking, "save_file", save)
            with pytest.raises(ConnectionAbortedError):
                taking.take(database, archive.data, folder)
        taken = taking.take(database, archive.data, folder)
    assert idle == [(0,), (0,)]
    copied = sum(new for _, new in saved)
    assert copied > 0
    assert taken.new_bytes == taken.bytes - copied
    assert not list(folder.rglob("*.jsonl"))
    archive.end()
    assert restored().run("check").returncode == 0


def test_a_place_that_holds_something_is_not_written_to(fresh, saved):
    held = fresh("data")
    done = held.run("restore", str(saved))
    assert done.returncode == 2
    assert str(held.data) in done.stderr


def test_a_folder_without_a_backup_is_told(tamias_at, tmp_path):
    copy = tamias_at("nothing")
    done = copy.run("restore", str(tmp_path))
    assert done.returncode == 1
    assert str(tmp_path) in done.stderr


def schema_of_backup(folder, schema):
    """As if the newest snapshot had been made from data of that schema."""
    [*_, newest] = sorted((folder / "snapshots").glob("*/snapshot.json"))
    newest.write_text(json.dumps(json.loads(newest.read_bytes()) | {"schema": schema}))


def columns_of_first(folder):
    """The columns that each table of the first schema has."""
    text = b"""
    SELECT table_name::text, column_name::text FROM information_schema.columns WHERE table_schema = 'tamias'
    """
    columns = {}
    with (
        closing(Database(folder, create=True, upto=FIRST)) as database,
        closing(database.session()) as session,
    ):
        for table, column in session.fetch_all(text):
            columns.setdefault(table, set()).add(column)
    return columns


def take_later_columns_out(folder, known):
    """Leaves in the newest snapshot what a backup of the first schema has; returns what is taken out."""
    [*_, newest] = sorted((folder / "snapshots").glob("*/snapshot.json"))
    snapshot, taken = json.loads(newest.read_bytes()), []
    snapshot["tables"] = [table for table in snapshot["tables"] if table["name"] in known]
    for table in snapshot["tables"]:
        kept = [place for place, name in enumerate(table["columns"]) if name in known[table["name"]]]
        if len(kept) == len(table["columns"]):
            continue
        taken += [(table["name"], name) for name in table["columns"] if name not in known[table["name"]]]
        path = newest.parent / "tables" / f"{table['name']}.copy.zst"
        with zstandard.open(path, "rb") as file:
            rows = [line.split(b"\t") for line in file.read().split(b"\n")[:-1]]
        path.write_bytes(
            zstandard.compress(b"".join(b"\t".join(row[place] for place in kept) + b"\n" for row in rows))
        )
        table["columns"] = [table["columns"][place] for place in kept]
        table["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    newest.write_text(json.dumps(snapshot))
    return taken


def test_a_backup_of_the_first_schema_is_restored_and_brought_up_to_date(saved, restored, tmp_path, site):
    schema_of_backup(saved, FIRST)
    taken = take_later_columns_out(saved, columns_of_first(tmp_path / "first"))
    assert ("resource", "missed") in taken
    copy = restored()
    assert len(versions(copy, site.url("/1.csv"))) == 1
    assert copy.run("get", site.url("/1.csv")).stdout.encode() == table(1, 1)
    with closing(Database(copy.data)) as database, closing(database.session()) as session:
        assert session.fetch_one(b"SELECT schema_version FROM meta") == (migrations()[-1].number,)
    assert copy.run("check").returncode == 0


@pytest.mark.parametrize(
    ("schema", "named"),
    [(FIRST - 1, LAST_TO_UPGRADE), (9999, "written by a newer Tamias")],
    ids=["older", "newer"],
)
def test_a_backup_of_a_schema_that_cannot_be_upgraded_is_refused_and_nothing_is_left(
    saved, tamias_at, schema, named
):
    schema_of_backup(saved, schema)
    copy = tamias_at("restored")
    done = copy.run("restore", str(saved))
    assert done.returncode == 4
    assert named in done.stderr
    assert not copy.data.exists()
