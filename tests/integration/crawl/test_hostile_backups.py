"""A backup that somebody else has changed is refused, and touches nothing outside of the data directory."""

import hashlib
import json
import os
import shutil
from contextlib import closing

import pytest
import zstandard

from tests.integration.conftest import Site, Tamias


@pytest.fixture(scope="module")
def taken(made_once, tmp_path_factory):
    """A backup with files of each kind."""
    folder = tmp_path_factory.mktemp("taken")
    tamias = Tamias(folder / "data")
    shutil.copytree(made_once, tamias.data)
    with closing(Site("127.0.0.1")) as site:
        site.pages |= {"/a": b"<> <#is> <#there> .", "/b.csv": b"a,b\n1,2\n"}
        assert tamias.run("add", site.url("/b.csv")).returncode == 0
        assert tamias.crawl("--recrawl").returncode == 0
        assert tamias.crawl(site.url("/a"), "--sink", "warc").returncode == 0
    done = tamias.run("backup", str(folder / "backup"))
    assert done.returncode == 0, done.stderr
    tamias.end()
    return folder / "backup"


class Backup:
    """A copy of it, to be changed."""

    def __init__(self, taken, folder):
        self.folder = folder / "backup"
        shutil.copytree(taken, self.folder)
        [self.snapshot] = (self.folder / "snapshots").glob("*Z")
        self.outside = folder / "outside"
        self.outside.write_bytes(b"of somebody else")

    @property
    def said(self):
        return json.loads((self.snapshot / "snapshot.json").read_bytes())

    def say(self, **news):
        (self.snapshot / "snapshot.json").write_text(json.dumps(self.said | news))

    def copy_of(self, kind):
        return next(each for each in (self.folder / "files" / kind).iterdir())

    def put_table(self, name, content):
        """Its rows, packed, with the sum that they have."""
        (self.snapshot / "tables" / f"{name}.copy.zst").write_bytes(content)
        sums = {"sha256": hashlib.sha256(content).hexdigest()}
        self.say(tables=[each | sums if each["name"] == name else each for each in self.said["tables"]])

    def change_rows(self, name, change):
        file = self.snapshot / "tables" / f"{name}.copy.zst"
        with zstandard.open(file, "rb") as rows:
            self.put_table(name, zstandard.compress(change(rows.read())))


def name_file(path):
    def attack(backup):
        first, *others = backup.said["files"]
        backup.say(files=[first | {"path": path}, *others])

    return attack


def name_table(name):
    def attack(backup):
        first, *others = backup.said["tables"]
        table = backup.snapshot / "tables"
        shutil.copy(table / f"{first['name']}.copy.zst", table / f"{name.rpartition('/')[2]}.copy.zst")
        backup.say(tables=[*others, first | {"name": name}])

    return attack


def replace(find, put):
    def attack(backup):
        path = find(backup)
        path.unlink()
        put(path, backup)

    return attack


def link(path, backup):
    path.symlink_to(backup.outside)


def pipe(path, _):
    os.mkfifo(path)


def endless(path, _):
    path.symlink_to("/dev/zero")


def rows_lead_out(name):
    return lambda backup: backup.change_rows(
        name,
        lambda rows: rows.replace(b".warc.gz", b"/../../../outside").replace(b".nq.zst", b"/../../outside"),
    )


def bomb(backup):
    """A few kilobytes that become a row of more than a gigabyte."""
    packer = zstandard.ZstdCompressor(level=1).compressobj()
    rows = [packer.compress(piece) for piece in (b"x\t1\t", *[b"a" * (1 << 26)] * 5)]
    backup.put_table("figure", b"".join(rows) + packer.flush())


def blobs(backup):
    return backup.copy_of("blobs")


def robots(backup):
    return backup.snapshot / "tables" / "robots.copy.zst"


def snapshot(backup):
    return backup.snapshot / "snapshot.json"


ATTACKS = {
    "a file above": name_file("rdf/../../outside"),
    "an absolute file": name_file("/etc/passwd"),
    "a file of a kind that is none": name_file("pg/postgresql.conf"),
    "a name with a line break": name_file("rdf/a\n"),
    "a file that is a link": replace(blobs, link),
    "a file that is a pipe": replace(blobs, pipe),
    "a file without end": replace(blobs, endless),
    "rows that are a link": replace(robots, link),
    "rows that are a pipe": replace(robots, pipe),
    "rows without end": replace(robots, endless),
    "a snapshot that is a pipe": replace(snapshot, pipe),
    "a snapshot without end": replace(snapshot, endless),
    "a table above": name_table("../../outside"),
    "a table of the system": name_table("pg_authid"),
    "a table of others": name_table("users"),
    "segments elsewhere": rows_lead_out("stored_file"),
    "records elsewhere": rows_lead_out("warc_record"),
    "a bomb": bomb,
    "a snapshot nested without end": lambda backup: snapshot(backup).write_bytes(b"[" * (64 << 20)),
    "buckets without end": lambda backup: backup.say(buckets=1 << 40),
    "no buckets": lambda backup: backup.say(buckets=-1),
    "a length below zero": lambda backup: backup.say(
        files=[each | {"length": -1} for each in backup.said["files"]]
    ),
    "a sequence that is none": lambda backup: backup.say(sequences=[["meta'; DROP SCHEMA tamias", "x", 1]]),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_backup_that_was_changed_is_refused_and_touches_nothing_else(taken, tamias_at, tmp_path, name):
    backup = Backup(taken, tmp_path)
    ATTACKS[name](backup)
    copy = tamias_at("copy")
    done = copy.run("restore", str(backup.folder), timeout=60)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert backup.outside.read_bytes() == b"of somebody else"
