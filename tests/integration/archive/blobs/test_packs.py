"""What every place for packs must do: a folder, and stores with the S3 interface."""

import json
import random
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from uuid import UUID

import pytest

from tamias.archive.blobs import LocalPacks, insert_blobs
from tamias.archive.blobs.collect import collect, recover
from tamias.archive.blobs.objects import ObjectPacks, open_bucket
from tamias.archive.blobs.packs import Pack, PackError, PackMissing, StoreUnavailable
from tamias.features.check.blobs import BlobCheck, rebuild_rows
from tamias.model.errors import DiskFull
from tests.messages import saying
from tests.ports import free_port

from . import s3_server
from .conftest import body_of, versions

ONE, TWO = UUID(int=1), UUID(int=2)
MOST_BUCKETS = 30
BUCKETS = iter(range(MOST_BUCKETS))


@pytest.fixture
def loopback():
    with s3_server.serving() as server:
        yield server


def bucket_at(endpoint, credentials=s3_server.CREDENTIALS, place="bucket/some/where"):
    return open_bucket(f"s3://{place}", s3_server.environment(endpoint, credentials))


def at_loopback(server, tmp_path, credentials=s3_server.CREDENTIALS, **options):
    bucket = bucket_at(f"http://127.0.0.1:{server.server_port}", credentials)
    return ObjectPacks(bucket, tmp_path / "spool", patience=0.0, **options)


@pytest.fixture(scope="session")
def moto():
    """A real S3 server of other hands, which checks signatures with Amazon's own library."""
    program = shutil.which("moto_server")
    if program is None:
        pytest.skip("moto_server is not installed (pip install 'moto[server]')")
    port = free_port()
    command = [program, "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        endpoint = f"http://127.0.0.1:{port}"
        try:
            yield endpoint, moto_credentials(endpoint)
        finally:
            process.terminate()


def moto_credentials(endpoint):
    """Makes a bucket and a user who may use it; from then on requests must be signed by that user."""
    wait_for(f"{endpoint}/moto-api/")
    for number in range(MOST_BUCKETS):
        ask(f"{endpoint}/bucket{number}", "s3", method="PUT")
    ask(f"{endpoint}/?Action=CreateUser&UserName=u&Version=2010-05-08", "iam")
    policy = json.dumps(
        {"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}}
    )
    named = f"UserName=u&PolicyName=p&PolicyDocument={urllib.request.quote(policy)}&Version=2010-05-08"
    ask(f"{endpoint}/?Action=PutUserPolicy&{named}", "iam")
    made = ask(f"{endpoint}/?Action=CreateAccessKey&UserName=u&Version=2010-05-08", "iam")
    ask(
        f"{endpoint}/moto-api/reset-auth",
        "s3",
        method="POST",
        data=b"0",
        headers={"content-type": "text/plain"},
    )
    key, secret = (
        made.partition(f"<{tag}>")[2].partition("<")[0] for tag in ("AccessKeyId", "SecretAccessKey")
    )
    return s3_server.Credentials(key, secret)


def ask(url, service, **options):
    request = urllib.request.Request(url, **options)
    scope = f"Credential=x/20200101/us-east-1/{service}/aws4_request"
    request.add_header("authorization", f"AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature=x")
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read().decode()


def wait_for(url):
    for _ in range(200):
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    pytest.skip("moto_server does not start")


@pytest.fixture(params=["folder", "loopback", "moto"])
def packs(request, tmp_path):
    if request.param == "folder":
        yield LocalPacks(tmp_path / "blobs")
        return
    if request.param == "loopback":
        found = at_loopback(request.getfixturevalue("loopback"), tmp_path)
    else:
        endpoint, credentials = request.getfixturevalue("moto")
        # A bucket for each test: it compares signatures of a query with a slash that it has decoded before.
        found = ObjectPacks(bucket_at(endpoint, credentials, f"bucket{next(BUCKETS)}"), tmp_path / "spool")
    yield found


def written(packs, pack, *records):
    writer = packs.create(pack)
    starts = [writer.append([record]) for record in records]
    writer.sync()
    writer.close()
    return starts


class TestEveryPlace:
    def test_records_are_read_as_they_were_written(self, packs):
        starts = written(packs, ONE, b"first", b"second")
        assert starts == [0, 5]
        assert packs.read(ONE, 5, 6) == b"second"

    def test_a_record_can_be_read_before_it_is_durable(self, packs):
        writer = packs.create(ONE)
        writer.append([b"in ", b"parts"])
        assert packs.read(ONE, 3, 5) == b"parts"
        writer.close()

    def test_what_is_taken_back_leaves_no_trace(self, packs):
        writer = packs.create(ONE)
        writer.append([b"kept"])
        writer.append([b"taken back"])
        writer.take_back(4)
        assert writer.append([b", then more"]) == 4
        writer.sync()
        writer.close()
        assert packs.read(ONE, 0, 15) == b"kept, then more"

    def test_bytes_beyond_the_end_are_missing(self, packs):
        written(packs, ONE, b"first")
        with pytest.raises(PackMissing):
            packs.read(ONE, 3, 10)

    def test_bytes_behind_the_end_are_missing(self, packs):
        written(packs, ONE, b"first")
        with pytest.raises(PackMissing):
            packs.read(ONE, 100, 10)

    def test_a_pack_that_is_not_there_is_missing(self, packs):
        with pytest.raises(PackMissing):
            packs.read(TWO, 0, 1)

    def test_a_pack_is_found_with_its_length(self, packs):
        written(packs, ONE, b"first")
        assert (packs.find(ONE), packs.find(TWO)) == (Pack(ONE, 5), None)

    def test_all_packs_are_listed(self, packs):
        made = [UUID(int=number) for number in range(1, 6)]
        for pack in made:
            written(packs, pack, b"x" * pack.int)
        assert sorted((pack.pack.int, pack.length) for pack in packs.all()) == [(n, n) for n in range(1, 6)]

    def test_a_pack_is_removed_once_or_twice(self, packs):
        written(packs, ONE, b"first")
        packs.remove(ONE)
        packs.remove(ONE)
        assert list(packs.all()) == []

    def test_a_pack_of_megabytes_comes_back(self, packs):
        content = random.Random(1).randbytes(20_000_000)
        written(packs, ONE, content)
        assert packs.read(ONE, 0, len(content)) == content

    def test_an_empty_place_has_no_packs(self, packs):
        assert list(packs.all()) == []


class TestBlobsInEveryPlace:
    def test_versions_come_back_exactly(self, packs, make_store):
        store = make_store(packs)
        bodies = versions(4)
        blobs = store.put_versions(bodies)
        assert [store.reader().read(blob.sha256) for blob in blobs] == bodies

    def test_a_check_finds_nothing(self, packs, make_store):
        store = make_store(packs)
        store.put_versions(versions(3))
        assert list(BlobCheck(packs, store.other).damages()) == []

    def test_rows_are_made_anew_from_the_packs(self, packs, make_store):
        store = make_store(packs)
        bodies = versions(3)
        blobs = store.put_versions(bodies)
        store.writer.close()
        store.other.transact(lambda cursor: cursor.execute("TRUNCATE blob, pack"))
        assert rebuild_rows(store.writer) == 3
        assert [store.reader().read(blob.sha256) for blob in blobs] == bodies

    def test_what_nobody_needs_is_freed(self, packs, make_store):
        store = make_store(packs)
        kept, *_ = store.put(*(body_of(random.Random(seed).randbytes(20_000)) for seed in range(5)))
        store.writer.close()
        assert collect(store.writer, store.other, [kept.sha256], 0.0).blobs == 4
        assert sum(pack.length for pack in packs.all()) == kept.written
        assert store.reader().read(kept.sha256) == random.Random(0).randbytes(20_000)


class TestStores:
    """What only happens far away."""

    def test_a_wrong_secret_is_refused_by_our_server(self, loopback, tmp_path):
        packs = at_loopback(loopback, tmp_path, s3_server.Credentials("loopback", "a wrong one"))
        with pytest.raises(PackError, match="403 SignatureDoesNotMatch"):
            written(packs, ONE, b"body")

    def test_a_wrong_secret_is_refused_by_a_server_of_other_hands(self, moto, tmp_path):
        endpoint, credentials = moto
        wrong = s3_server.Credentials(credentials.key, "a wrong one")
        packs = ObjectPacks(bucket_at(endpoint, wrong, "bucket0"), tmp_path / "spool")
        with pytest.raises(PackError, match="403 SignatureDoesNotMatch"):
            written(packs, ONE, b"body")

    def test_trouble_that_passes_is_waited_for(self, loopback, tmp_path):
        loopback.answers = [503, 500]
        packs = at_loopback(loopback, tmp_path)
        written(packs, ONE, b"body")
        assert packs.read(ONE, 0, 4) == b"body"

    def test_trouble_that_stays_is_told(self, loopback, tmp_path):
        loopback.answers = [503] * 4
        with pytest.raises(PackError, match="it answered 503"):
            written(at_loopback(loopback, tmp_path), ONE, b"body")

    def test_a_store_without_room_is_a_full_disk(self, loopback, tmp_path):
        loopback.answers = [507]
        with pytest.raises(DiskFull, check=saying()):
            written(at_loopback(loopback, tmp_path), ONE, b"body")

    def test_a_store_that_is_away_is_told(self, tmp_path):
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            bucket = bucket_at(f"http://127.0.0.1:{nobody.getsockname()[1]}")
            with pytest.raises(PackError, match="cannot be reached"):
                ObjectPacks(bucket, tmp_path, patience=0.0).read(ONE, 0, 1)

    def test_a_failed_sync_makes_nothing_true_and_all_can_come_again(self, loopback, make_store, tmp_path):
        store = make_store(at_loopback(loopback, tmp_path))
        loopback.answers = [507]
        store.writer.prepare(body_of(b"body"))
        with pytest.raises(DiskFull):
            store.writer.sync()
        (prepared,) = store.put(body_of(b"body"))
        assert store.reader().read(prepared.sha256) == b"body"

    def test_a_store_that_hides_what_is_missing_can_be_reached(self, loopback, tmp_path):
        """Without the right to list a bucket, Amazon answers 403 for an object that is not there."""
        loopback.answers = [403]
        at_loopback(loopback, tmp_path).probe()
        loopback.answers = [503] * 4
        with pytest.raises(StoreUnavailable):
            at_loopback(loopback, tmp_path).probe()

    def test_a_full_pack_that_cannot_be_sent_says_why_to_all_that_follow(
        self, loopback, make_store, tmp_path
    ):
        store = make_store(at_loopback(loopback, tmp_path), pack_bytes=1000)
        bodies = [body_of(random.Random(seed).randbytes(2000)) for seed in range(3)]
        store.writer.prepare(bodies[0])
        loopback.answers = [503] * 4
        for body in bodies[1:]:
            with pytest.raises(StoreUnavailable):
                store.writer.prepare(body)
        with pytest.raises(StoreUnavailable):
            store.writer.sync()
        for prepared, seed in zip(store.put(*bodies), range(3), strict=True):
            assert store.reader().read(prepared.sha256) == random.Random(seed).randbytes(2000)

    def test_an_object_whose_rows_never_came_is_removed_when_it_is_old(self, loopback, make_store, tmp_path):
        store = make_store(at_loopback(loopback, tmp_path))
        store.writer.prepare(body_of(b"body"))
        store.writer.sync()
        recover(store.packs, store.other)
        assert len(loopback.objects) == 1
        store.rows("UPDATE pack SET made_at = now() - interval '2 hours' RETURNING 1")
        recover(store.packs, store.other)
        assert loopback.objects == {}

    def test_a_copy_removes_nothing_from_a_store_that_is_borrowed(self, loopback, make_store, tmp_path):
        store = make_store(at_loopback(loopback, tmp_path, is_borrowed=True))
        kept, *_ = store.put(*(body_of(random.Random(seed).randbytes(20_000)) for seed in range(5)))
        store.writer.prepare(body_of(b"body"))
        store.writer.sync()
        store.writer.close()
        store.rows("UPDATE pack SET made_at = now() - interval '2 hours' RETURNING 1")
        before = dict(loopback.objects)
        assert len(before) == 2
        assert collect(store.writer, store.other, [kept.sha256], 0.0).packs_removed == 0
        assert collect(store.writer, store.other, [], 0.0).packs_removed == 0
        assert loopback.objects == before

    def test_rows_that_come_after_that_are_refused(self, loopback, make_store, tmp_path):
        store = make_store(at_loopback(loopback, tmp_path))
        prepared = store.writer.prepare(body_of(b"body"))
        store.writer.sync()
        store.rows("UPDATE pack SET made_at = now() - interval '2 hours' RETURNING 1")
        recover(store.packs, store.other)
        with pytest.raises(Exception, match="prepare them again"):
            store.other.transact(lambda cursor: insert_blobs(cursor, [prepared]))
