"""Every version is profiled, once for equal bytes, and stored in little space."""

import msgspec
import pytest

from tamias.archive.blobs import BlobReader, LocalPacks
from tamias.archive.versions.resources import read_versions
from tamias.features.dcat.profiles import read_profile
from tamias.features.tables import chores
from tamias.features.tables.body import profile
from tamias.features.tables.chores import profile_some

URL = "http://data.example/long.csv"


def table(first):
    rows = (f"{n},name {n},{n * 1.5},2026-01-{n % 28 + 1:02}\n" for n in range(first, first + 1000))
    return "".join(["id,name,price,day\n", *rows]).encode()


def test_every_version_has_a_profile_that_is_read_back_whole(filled, tmp_path):
    contents = [table(1), table(2), table(1), b"id,name\n1,a\n"]
    name = filled.put(URL, *contents)
    blobs = BlobReader(LocalPacks(filled.data / "blobs"), filled.session)
    assert profile_some(filled.session, blobs) == 3
    assert profile_some(filled.session, blobs) == 0
    for version, content in zip(read_versions(filled.session, [name])[name], contents, strict=True):
        (tmp_path / "body").write_bytes(content)
        told = "text/csv; charset=iso-8859-2"
        found = profile(tmp_path / "body", media_type="text/csv", declared_type=told, name=URL)
        kept = read_profile(filled.session, version.sha256)
        assert (kept.size, kept.types, kept.lines) == (found.size, found.types, found.lines)
        plain = [msgspec.structs.replace(column, sketch=b"") for column in found.tables[0].columns]
        assert list(kept.tables[0].columns) == plain


def test_a_profile_takes_half_of_what_it_took_as_json(filled, tmp_path):
    name = filled.put(URL, table(1))
    profile_some(filled.session, BlobReader(LocalPacks(filled.data / "blobs"), filled.session))
    (tmp_path / "body").write_bytes(table(1))
    found = profile(tmp_path / "body", media_type="text/csv", declared_type=None, name=URL)
    before = len(msgspec.json.encode(found)) + len(msgspec.json.encode(found.tables))
    [(content, tables)] = filled.session.fetch_all(
        b"SELECT sum(octet_length(packed))::int8, sum(octet_length(profile::text))::int8 FROM profile"
        b" JOIN resource USING (sha256) WHERE resource = %(name)b::text",
        {"name": name},
    )
    assert content < 1500
    assert content + tables < 0.5 * before


def test_a_profile_of_an_earlier_version_of_tamias_is_read(filled, tmp_path):
    name = filled.put(URL, table(1))
    [version] = read_versions(filled.session, [name])[name]
    (tmp_path / "body").write_bytes(table(1))
    found = profile(tmp_path / "body", media_type="text/csv", declared_type=None, name=URL)
    filled.session.transact(
        lambda cursor: cursor.execute(
            "INSERT INTO profile (sha256, kind, made_at, profile) VALUES (%s, 'content', 0, %s)",
            (bytes.fromhex(version.sha256), msgspec.json.encode(found).decode()),
        )
    )
    assert read_profile(filled.session, version.sha256) == found


def test_profiles_of_a_lot_that_breaks_off_are_kept_and_the_rest_waits(filled, monkeypatch):
    names = [filled.put(f"http://data.example/{number}.csv", table(number)) for number in range(4)]
    blobs = BlobReader(LocalPacks(filled.data / "blobs"), filled.session)
    left = iter((True, True, False))

    def until_full(*words, **more):
        if not next(left):
            raise OSError("no space left on device")
        return profile(*words, **more)

    monkeypatch.setattr(chores, "profile", until_full)
    with pytest.raises(OSError, match="no space"):
        profile_some(filled.session, blobs)
    [kept, due] = (
        {digest.hex() for (digest,) in filled.rows(statement)}
        for statement in ("SELECT DISTINCT sha256 FROM profile", "SELECT sha256 FROM profile_due")
    )
    every = {read_versions(filled.session, [name])[name][0].sha256 for name in names}
    assert (len(kept & every), len(due & every), kept & due) == (2, 2, set())
    monkeypatch.undo()
    assert profile_some(filled.session, blobs) == 2


def test_a_body_that_is_lost_has_an_empty_profile_and_keeps_no_other_from_its_own(filled):
    name, lost = filled.put(URL, table(7)), filled.put("http://data.example/lost.csv", table(8))
    [gone] = read_versions(filled.session, [lost])[lost]
    filled.session.transact(
        lambda cursor: cursor.execute("DELETE FROM blob WHERE sha256 = %s", (bytes.fromhex(gone.sha256),))
    )
    blobs = BlobReader(LocalPacks(filled.data / "blobs"), filled.session)
    assert profile_some(filled.session, blobs) == 2
    [version] = read_versions(filled.session, [name])[name]
    assert read_profile(filled.session, gone.sha256).size == 0
    assert read_profile(filled.session, version.sha256).tables[0].rows == 1000
