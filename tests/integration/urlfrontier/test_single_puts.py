"""URLs that come one by one: whatever becomes of the database, each is answered."""

import threading
import time
from contextlib import closing, contextmanager

import pytest
from frontier_client import Client, Instance, Stream

OK, SKIPPED = 0, 1


@pytest.fixture
def stream(client):
    """A stream after its first puts."""
    with closing(Stream(client)) as made:
        assert [made.put(f"http://a.example/first/{number}") for number in range(3)] == [OK] * 3
        yield made


def test_each_is_new_once(stream, client):
    urls = [f"http://a.example/{number}" for number in range(20)]
    assert [stream.put(url) for url in urls] == [OK] * 20
    assert [stream.put(url) for url in urls] == [SKIPPED] * 20
    assert client.stats("a.example").size == 23


def test_a_queue_that_is_deleted_meanwhile_is_made_again(stream, client):
    for number in range(5):
        assert stream.put(f"http://a.example/{number}") == OK
        assert client.call("DeleteQueue", key="a.example").value >= 1
    assert stream.put("http://a.example/last") == OK
    assert client.get(urls=10, queues=10) == ["http://a.example/last"]


def test_long_metadata_is_put_too(stream, client):
    assert stream.put("http://a.example/long", note=["x" * 250_000]) == OK
    (item,) = [each for each in client.call("ListURLs", size=100) if each.known.info.url.endswith("/long")]
    assert len(item.known.info.metadata["note"].values[0]) == 250_000


def test_a_lost_connection_is_opened_again(stream, client, frontier_session):
    for number in range(5):
        _end_others(frontier_session)
        assert stream.put(f"http://a.example/{number}") == OK
    assert client.stats("a.example").size == 8


def test_a_connection_that_is_lost_while_a_url_is_put_loses_nothing(stream, client, frontier_session):
    with _locked_hosts(frontier_session) as wait_for_a_put:
        stream.send("http://a.example/lost")
        wait_for_a_put()
        _end_others(frontier_session)
        wait_for_a_put()
    assert stream.answer() == OK
    assert stream.put("http://a.example/lost") == SKIPPED
    assert client.stats("a.example").size == 4


def test_while_one_waits_for_a_lock_others_are_answered_and_come_after_it(
    stream, client, instance, frontier_session
):
    with closing(Client(instance.address)) as other, closing(Stream(other)) as second:
        with _locked_hosts(frontier_session) as wait_for_a_put:
            stream.send("http://a.example/same")
            wait_for_a_put()
            second.send("http://a.example/same")
            assert client.stats("a.example").size == 3
        assert stream.answer() == OK
        assert second.answer() == SKIPPED


def test_two_streams_put_the_same_urls_at_once(client, instance):
    urls = [f"http://a.example/{number}" for number in range(200)]
    verdicts = {}

    def put(name):
        with closing(Client(instance.address)) as own, closing(Stream(own)) as stream:
            verdicts[name] = [stream.put(url) for url in urls]

    threads = [threading.Thread(target=put, args=[name]) for name in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [sorted(each) for each in zip(*verdicts.values(), strict=True)] == [[OK, SKIPPED]] * 200
    assert client.stats("a.example").size == 200


def test_what_was_answered_is_there_after_a_kill(tmp_path):
    urls = [f"http://a.example/{number}" for number in range(50)]
    first = Instance(tmp_path / "data")
    with closing(Client(first.address)) as client:
        stream = Stream(client)
        assert [stream.put(url) for url in urls] == [OK] * 50
        first.kill()
    second = Instance(tmp_path / "data")
    with closing(Client(second.address)) as client:
        assert client.discover(*urls) == [SKIPPED] * 50
    second.stop()


def _end_others(session):
    session.fetch_all(
        b"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        b" AND backend_type = 'client backend' AND application_name <> 'the test'"
    )


@contextmanager
def _locked_hosts(session):
    """Nothing is put as long as hosts are locked; gives a function that waits until a put waits for that."""
    connection = session.apart()._open()
    connection.execute("SET application_name = 'the test'")

    def wait_for_a_put():
        deadline = time.monotonic() + 30
        while session.fetch_one(b"SELECT count(*) FROM pg_locks WHERE NOT granted") == (0,):
            assert time.monotonic() < deadline
            time.sleep(0.02)

    with connection.transaction():
        connection.execute("SELECT FROM host FOR UPDATE")
        yield wait_for_a_put
