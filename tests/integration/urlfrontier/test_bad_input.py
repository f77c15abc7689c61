"""Clients that send nonsense, flood or stall get a status that says so, and the service goes on."""

import socket
import time

import grpc
import h2.config
import h2.connection
import h2.events
import h2.settings
import pytest
from frontier_client import Client, discovered, info, known, make

from tamias.features.urlfrontier.grpc.http2 import MAX_MESSAGE, STREAM_WINDOW
from tamias.features.urlfrontier.puts import MOST_ITEMS

OK, SKIPPED = 0, 1
PUT = "/urlfrontier.URLFrontier/PutURLs"


@pytest.fixture(autouse=True)
def goes_on(client):
    yield
    assert client.discover("http://afterwards.example/") == [OK]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nonsense",
        "http://",
        "mailto:a@b.example",
        "http://a.example/\0",
        "http://a b/",
        "http://a.example/" + "x" * 40_000,
    ],
    ids=["empty", "no scheme", "no host", "mail", "NUL", "space in host", "huge"],
)
def test_what_is_no_url_is_skipped_and_the_others_are_taken(client, url):
    assert client.discover(url, "http://good.example/") == [SKIPPED, OK]


def test_an_item_with_neither_kind_is_skipped(client):
    assert client.put(make("URLItem", ID="1")) == [("1", SKIPPED)]


@pytest.mark.parametrize(
    "words", [{"key": "k" * 256}, {"crawl": "c" * 256}, {"key": "a\0b"}, {"crawl": "a\0b"}]
)
def test_a_name_that_is_none_is_skipped(client, words):
    assert client.discover("http://a.example/", **words) == [SKIPPED]


def test_metadata_that_no_database_takes_is_skipped(client):
    assert client.put(discovered("http://a.example/", note=["a\0b"]))[0][1] == SKIPPED


def test_names_in_other_scripts_are_names(client):
    client.discover("http://a.example/", key="κλειδί", crawl="爬取")
    assert [(each.key, each.crawlID) for each in client.call("GetURLs")] == [("κλειδί", "爬取")]


def test_bytes_that_are_no_utf8_are_refused(client):
    stub = client.channel.stream_stream(PUT, lambda raw: raw, client.types["PutURLs"][1].FromString)
    with pytest.raises(grpc.RpcError) as error:
        list(stub(iter([b"\x0a\x07\x0a\x05\x0a\x03\xff\xfe\xfd"])))
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_items_before_a_broken_one_are_answered(client):
    stub = client.channel.stream_stream(PUT, lambda raw: raw, client.types["PutURLs"][1].FromString)
    good = discovered("http://a.example/", name="good").SerializeToString()
    stream = stub(iter([good]))
    assert next(stream).ID == "good"


def test_a_message_that_is_too_long_is_refused(client):
    with pytest.raises(grpc.RpcError) as error:
        client.put(discovered("http://a.example/", name="x" * (MAX_MESSAGE + 1)))
    assert error.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("call", ["DeleteQueue", "BlockQueueUntil", "SetCrawlLimit"])
def test_a_queue_without_a_key_is_refused(client, call):
    with pytest.raises(grpc.RpcError) as error:
        client.call(call)
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_a_status_of_what_has_no_host_is_refused(client):
    with pytest.raises(grpc.RpcError) as error:
        client.call("GetURLStatus", url="mailto:a@b.example")
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_an_unknown_call_is_unimplemented(client):
    stub = client.channel.unary_unary("/urlfrontier.URLFrontier/Nonsense")
    with pytest.raises(grpc.RpcError) as error:
        stub(b"", timeout=10)
    assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize(
    "date", [1, 253_402_300_799, 2**63, 2**64 - 1], ids=["past", "9999", "2^63", "2^64-1"]
)
def test_any_date_is_taken(client, date):
    assert client.put(known("http://a.example/", date))[0][1] == OK
    shown = client.call("GetURLStatus", url="http://a.example/").known.refetchable_from_date
    assert shown == min(date, 253_402_300_799)


def test_a_block_until_the_end_of_time_is_a_block(client):
    client.discover("http://a.example/")
    client.call("BlockQueueUntil", key="a.example", time=2**64 - 1)
    assert client.get() == []


def test_the_largest_numbers_are_numbers(client):
    client.discover("http://a.example/")
    most = 2**32 - 1
    assert client.get(urls=most, queues=most, hold=most) == ["http://a.example/"]
    assert len(client.call("ListURLs", size=most)) == 1
    assert list(client.call("ListQueues", start=most, size=most).values) == []
    client.call("SetDelay", delay_requestable=most)


def test_an_unknown_crawl_is_empty(client):
    assert client.get(crawlID="nowhere") == []
    assert client.call("ListURLs", crawlID="nowhere") == []
    assert client.stats(crawl="nowhere").size == 0
    assert client.call("DeleteCrawl", value="nowhere").value == 0


def test_a_deadline_ends_a_call(client):
    def endless():
        while True:
            time.sleep(0.05)
            yield discovered("http://a.example/")

    with pytest.raises(grpc.RpcError) as error:
        _drip(client, endless())
    assert error.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED


def _drip(client, items):
    asked, answered = client.types["PutURLs"]
    stub = client.channel.stream_stream(PUT, asked.SerializeToString, answered.FromString)
    return list(stub(items, timeout=0.5))


def test_a_client_that_does_not_read_its_answers_is_not_read_from(client, instance):
    with Raw(instance.address, window=0) as raw:
        raw.begin(PUT)
        item = discovered("http://a.example/", name="x" * 2000).SerializeToString()
        sent = raw.send_while_there_is_room(b"\0" + len(item).to_bytes(4, "big") + item, quiet=1.0)
    assert sent <= 2 * MOST_ITEMS + STREAM_WINDOW // len(item)


def test_noise_on_the_port_ends_only_that_connection(client, instance):
    host, _, port = instance.address.rpartition(":")
    with socket.create_connection((host, int(port)), 5) as noise:
        noise.sendall(b"GET / HTTP/1.1\r\n\r\n" * 10)
        noise.settimeout(10)
        while noise.recv(65536):
            pass


def test_a_flood_of_calls_that_are_dropped_ends_the_connection(client, instance):
    with Raw(instance.address) as raw, pytest.raises(ConnectionError):
        raw.begin_and_drop(PUT, 5000)


def test_many_connections_are_served(client, instance):
    clients = [Client(instance.address) for _ in range(50)]
    assert [each.discover(f"http://h{number}.example/") for number, each in enumerate(clients)] == [[OK]] * 50
    for each in clients:
        each.close()


def test_a_batch_of_nonsense_is_skipped_item_by_item(client):
    (answer,) = client.call("PutDiscovered", make("DiscoveredBatch", items=[info("")] * 1000))
    assert set(answer.statuses) == {SKIPPED}
    assert len(answer.statuses) == 1000


class Raw:
    """A client that misbehaves at will."""

    def __init__(self, address, window=65_535):
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), 10)
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        self.h2.local_settings = h2.settings.Settings(
            client=True, initial_values={h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window}
        )
        self.h2.initiate_connection()
        self.stream = 0
        self.flush()
        self.read(1)

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.socket.close()

    def begin(self, path):
        self.stream = self.h2.get_next_available_stream_id()
        headers = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "x")]
        self.h2.send_headers(
            self.stream, [*headers, ("content-type", "application/grpc"), ("te", "trailers")]
        )
        self.flush()

    def begin_and_drop(self, path, times):
        for _ in range(times):
            self.begin(path)
            self.h2.reset_stream(self.stream)
            self.flush()
            self.read(0)

    def send_while_there_is_room(self, message, quiet):
        sent = 0
        while True:
            if self.h2.local_flow_control_window(self.stream) >= len(message):
                self.h2.send_data(self.stream, message)
                sent += 1
                if sent % 100 == 0:
                    self.flush()
                    self.read(0)
            else:
                self.flush()
                if not self.read(quiet):
                    return sent

    def flush(self):
        self.socket.sendall(self.h2.data_to_send())

    def read(self, seconds):
        self.socket.settimeout(seconds or 0.0001)
        try:
            data = self.socket.recv(1 << 16)
        except TimeoutError:
            return False
        finally:
            self.socket.settimeout(10)
        if not data:
            raise ConnectionError
        events = self.h2.receive_data(data)
        if any(isinstance(event, h2.events.ConnectionTerminated) for event in events):
            raise ConnectionError
        self.flush()
        return True
