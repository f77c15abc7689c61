"""`tamias repack`: versions take less space, and every one is what it was, whenever the process is killed."""

import hashlib
import json
import os
import random
import signal
import subprocess
import time
from contextlib import closing

import pytest

from tamias.archive.blobs import BlobReader, LocalPacks
from tamias.archive.blobs.packs import StoreUnavailable
from tamias.archive.reader.library import ArchiveReader
from tamias.features.repack import repacker as repacking
from tamias.features.repack.recode import Recoded, recode_versions, recode_without
from tests import commands
from tests.examples import sample

from .independent_pack_reader import read_packs

KILLS = 100 if os.environ.get("TAMIAS_NIGHTLY") else 10


def history(count, rows=300, seed=1):
    """Edits as real ones are: rows come at the end, a cell is corrected, the table is sorted anew."""
    chance = random.Random(seed)
    lines = [f"2026-{n // 28 % 12 + 1:02}-{n % 28 + 1:02},{chance.random():.4f},{n}" for n in range(rows)]
    versions = []
    for number in range(count):
        versions.append("\n".join(["day,value,number", *lines, ""]).encode())
        lines.append(f"2027-01-01,{chance.random():.4f},{rows + number}")
        lines[chance.randrange(len(lines))] += "0"
        if number == count // 2:
            lines.sort(key=lambda line: line.split(",")[1])
    return versions


HISTORIES = {
    "http://data.example/a.csv": history(30),
    "http://data.example/b.csv": history(12, rows=2000, seed=2),
    "http://data.example/returned.csv": [b"one\n" * 50, b"two\n" * 50, b"one\n" * 50],
    "http://data.example/emptied.csv": [b"one\n" * 900, b"two\n" * 900, b"one\n" * 901, b""],
    **{f"http://small.example/{n}.json": [json.dumps({"id": n, "name": "x" * n}).encode()] for n in range(9)},
}


@pytest.fixture
def kept(filled):
    for url, versions in HISTORIES.items():
        filled.put(url, *versions)
    filled.writer.close()
    return filled


def run_repack(kept, *options, **words):
    command = ["repack", "--after", "0", "--all", "--json"]
    command += ["--data", str(kept.data)]
    return commands.run([*command, *options], check=True, capture_output=True, text=True, **words)


def repacked(kept, *options):
    return json.loads(run_repack(kept, *options).stdout)


def read_all(kept):
    """Every version through the archive's own reader, as `tamias get` gives it."""
    with ArchiveReader(kept.data) as archive:
        return {
            url: [archive.get(url, version=number).bytes() for number in range(1, len(versions) + 1)]
            for url, versions in HISTORIES.items()
        }


def on_disk(kept):
    return sum(path.stat().st_size for path in (kept.data / "blobs").glob("*.pack"))


def damages(kept):
    from tamias.features.check.blobs import BlobCheck

    return list(BlobCheck(LocalPacks(kept.data / "blobs"), kept.session).damages())


def test_versions_take_less_space_and_are_the_same(kept):
    before = on_disk(kept)
    done = repacked(kept)
    assert done["complete"]
    assert done["after"] < done["before"]
    assert on_disk(kept) < 0.7 * before
    assert read_all(kept) == HISTORIES
    assert damages(kept) == []
    [(used,)] = kept.rows("SELECT sum(length)::int8 FROM blob")
    assert on_disk(kept) == used


def test_a_second_run_has_nothing_to_do(kept):
    repacked(kept)
    assert repacked(kept)["versions"] == 0


def test_new_versions_follow_a_repacked_history_and_are_repacked_with_it(kept):
    repacked(kept)
    url = "http://data.example/a.csv"
    more = history(60)
    kept.put(url, *more)
    kept.writer.close()
    assert repacked(kept)["versions"] >= 60
    with ArchiveReader(kept.data) as archive:
        for number, version in enumerate([*HISTORIES[url], *more], start=1):
            assert archive.get(url, version=number).bytes() == version
    assert damages(kept) == []


def test_small_files_of_one_host_share_a_group(kept):
    repacked(kept)
    groups = kept.rows(
        "SELECT DISTINCT blob.base FROM version JOIN blob USING (sha256) JOIN resource USING (resource) "
        "WHERE resource.host = 'small.example' AND blob.codec = 'part'"
    )
    assert len(groups) == 1


def test_packs_are_readable_by_the_format_page_alone(kept):
    repacked(kept)
    bodies = read_packs(kept.data / "blobs")
    for versions in HISTORIES.values():
        for version in versions:
            assert bodies[hashlib.sha256(version).hexdigest()] == version


def test_a_reader_that_looked_before_the_repack_finds_the_body(kept):
    bodies = {hashlib.sha256(body).hexdigest(): body for each in HISTORIES.values() for body in each}
    session = kept.database.session()
    readers = {sha256: BlobReader(LocalPacks(kept.data / "blobs"), session) for sha256 in bodies}
    for sha256, reader in readers.items():
        looked, chains = reader.table.chains([sha256]), reader.table.chains
        answers = iter([looked])
        reader.table.chains = lambda asked, answers=answers, chains=chains: (
            next(answers, None) or chains(asked)
        )
    repacked(kept)
    assert {sha256: reader.read(sha256) for sha256, reader in readers.items()} == bodies
    session.close()


def test_rows_can_be_rebuilt_from_repacked_packs(kept):
    before = on_disk(kept)
    repacked(kept)
    assert on_disk(kept) < before
    kept.run("TRUNCATE blob, pack")
    from tamias.features.check.checkup import Checkup

    with closing(Checkup(kept.database, kept.data)) as checkup:
        faults = list(checkup.faults())
        assert all(fault.mended for fault in checkup.repaired(faults))
    assert read_all(kept) == HISTORIES


def test_a_body_that_moved_meanwhile_is_left_as_it_is(kept):
    from tamias.archive.blobs import BlobLost

    digests = [hashlib.sha256(body).hexdigest() for body in reversed(HISTORIES["http://data.example/a.csv"])]
    moved = bytes.fromhex(digests[3])
    switch, rows = kept.writer.sync, kept.rows("SELECT * FROM blob ORDER BY sha256")

    def sync():
        switch()
        kept.run("UPDATE blob SET start = start + 1 WHERE sha256 = %b", moved)

    kept.writer.sync = sync
    with pytest.raises(BlobLost):
        recode_versions(kept.writer, kept.session, digests)
    kept.run("UPDATE blob SET start = start - 1 WHERE sha256 = %b", moved)
    assert kept.rows("SELECT * FROM blob ORDER BY sha256") == rows


def test_bodies_that_are_gone_are_not_coded_anew(kept):
    assert recode_versions(kept.writer, kept.session, ["00" * 32]) == Recoded()


@pytest.mark.parametrize("place", [0, 1, 15, 29])
@pytest.mark.parametrize("first", [True, False])
def test_nothing_needs_a_body_once_the_others_are_coded_without_it(kept, place, first):
    if first:
        repacked(kept)
    bodies = HISTORIES["http://data.example/a.csv"]
    digests = [hashlib.sha256(body).hexdigest() for body in reversed(bodies)]
    recode_without(kept.writer, kept.session, digests[place])
    kept.run("DELETE FROM blob WHERE sha256 = %b", bytes.fromhex(digests[place]))
    needed = "SELECT base FROM blob WHERE base IS NOT NULL"
    kept.run(f"DELETE FROM blob WHERE codec = 'group' AND sha256 NOT IN ({needed})")
    reader = BlobReader(LocalPacks(kept.data / "blobs"), kept.session)
    for body, sha256 in zip(reversed(bodies), digests, strict=True):
        if sha256 != digests[place]:
            assert reader.read(sha256) == body
    kept.writer.close()
    assert damages(kept) == []


def repacked_here(kept, **options):
    return repacking.repack(kept.database, kept.data, after=0, **options)


@pytest.mark.parametrize("sound_reads", [0, 1, 20, 45])
def test_a_store_that_goes_away_ends_the_run_and_nothing_is_passed_over(kept, monkeypatch, sound_reads):
    kept.run("DELETE FROM figure")
    reads, left = LocalPacks.read, iter(range(sound_reads))

    def read(packs, *place):
        if next(left, None) is None:
            raise StoreUnavailable("the store cannot be reached")
        return reads(packs, *place)

    with monkeypatch.context() as patched:
        patched.setattr(LocalPacks, "read", read)
        with pytest.raises(StoreUnavailable):
            repacked_here(kept)
    assert kept.rows("SELECT FROM figure WHERE name = 'repacked_until'") == []
    assert repacked_here(kept).complete
    assert repacked_here(kept, again=True).versions == 0
    assert read_all(kept) == HISTORIES
    [(used,)] = kept.rows("SELECT sum(length)::int8 FROM blob")
    assert on_disk(kept) == used


def test_a_run_that_waits_for_longer_than_it_may_work_ends(kept, monkeypatch):
    kept.run("DELETE FROM figure")
    reads = LocalPacks.read

    def slow(packs, *place):
        time.sleep(0.02)
        return reads(packs, *place)

    monkeypatch.setattr(LocalPacks, "read", slow)
    monkeypatch.setattr(repacking.time, "process_time", lambda: 0.0)
    assert not repacked_here(kept, seconds=0.001).complete


def test_packs_of_a_store_are_looked_at_once_and_only_after_something_was_moved(kept, monkeypatch):
    looked = []
    find = LocalPacks.find
    monkeypatch.setattr(LocalPacks, "find", lambda packs, pack: looked.append(pack) or find(packs, pack))
    monkeypatch.setattr(LocalPacks, "is_elsewhere", True)
    monkeypatch.setattr(repacking, "AT_ONCE", 2)
    assert repacked_here(kept, again=True).versions > 0
    assert len(looked) == len(set(looked)) > 0
    looked.clear()
    assert repacked_here(kept, again=True).complete
    assert looked == []


FAULTS = (
    "blob-part-written",
    "pack-made",
    "recoded-synced",
    "recoded-switched",
    "pack-closed",
    "blob-part-written:6",
)


@pytest.mark.parametrize("fault", sample(FAULTS, 3))
def test_a_repack_killed_at_a_step_leaves_every_version(kept, fault):
    with pytest.raises(subprocess.CalledProcessError):
        run_repack(kept, env={**os.environ, "TAMIAS_FAULT": fault})
    assert read_all(kept) == HISTORIES
    assert damages(kept) == []
    assert repacked(kept)["complete"]
    assert read_all(kept) == HISTORIES
    [(used,)] = kept.rows("SELECT sum(length)::int8 FROM blob")
    assert on_disk(kept) == used


def kill_at_random(kept, times, seed):
    """Repacks again and again, each time killed after a random while; gives how many were."""
    chance = random.Random(seed)
    command = ["repack", "--after", "0", "--all", "--data", str(kept.data)]
    started = time.monotonic()
    commands.run(command, check=True, capture_output=True)
    longest = time.monotonic() - started
    killed = 0
    for turn in range(times):
        # New versions, so that there is something to do.
        kept.put("http://data.example/c.csv", *history(8, rows=400, seed=100 + turn))
        kept.writer.close()
        with commands.start(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            time.sleep(chance.uniform(0.3, 1.0) * longest)
            process.send_signal(signal.SIGKILL)
            killed += process.wait() == -signal.SIGKILL
        assert read_all(kept) == HISTORIES, f"killed in turn {turn}"
    return killed


@pytest.mark.nightly
def test_a_repack_killed_at_random_leaves_every_version(kept):
    assert kill_at_random(kept, KILLS, seed=3) > 0
    assert damages(kept) == []
    assert repacked(kept)["complete"]
    assert damages(kept) == []
    with ArchiveReader(kept.data) as archive:
        wanted = [body for turn in range(KILLS) for body in history(8, rows=400, seed=100 + turn)]
        for number, body in enumerate(wanted, start=1):
            assert archive.get("http://data.example/c.csv", version=number).bytes() == body
