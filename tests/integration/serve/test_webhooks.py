"""Events as they happen: webhooks, signed, in order and through crashes; and the stream for pages."""

import base64
import hashlib
import hmac
import http.server
import json
import signal
import threading
import time

import httpx
import pytest

from tamias.features.service.events.webhooks import MOST_ATTEMPTS, pause_ms, post
from tamias.permit.addresses import forbidden

from .conftest import Filled, Running

SECRET = "open sesame"
PATIENCE = 60.0


class Receiver:
    """Takes deliveries; answers with the statuses it was told to, then with 204."""

    def __init__(self):
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                status = receiver.statuses.pop(0) if receiver.statuses else 204
                receiver.taken.append((status, dict(self.headers), body))
                self.send_response(status)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.statuses, self.taken = [], []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self.thread.start()

    def events(self):
        """Of all deliveries that were taken."""
        taken = [json.loads(body)["data"]["events"] for status, _, body in self.taken if status == 204]
        return [event for events in taken for event in events]

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited {PATIENCE} s in vain"
        time.sleep(0.05)


@pytest.fixture
def receiver():
    made = Receiver()
    yield made
    made.close()


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """An archive of our own: any service on one may take up a delivery, also one that may not connect."""
    made = Filled(tmp_path_factory.mktemp("told"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def open_service(told):
    """A service that may talk to private addresses."""
    running = Running(told.data, "--no-crawl", "--allow-private", TAMIAS_SECRET=SECRET)
    yield running
    running.stop()


@pytest.fixture
def hooks(open_service):
    """`hooks(**words)` makes a webhook; all are taken away afterwards."""
    headers = {"Authorization": f"Bearer {SECRET}"}
    with httpx.Client(base_url=open_service.address, headers=headers, timeout=30) as client:

        def make(**words):
            answer = client.post("/api/v1/webhooks", json=words)
            assert answer.status_code == 201, answer.text
            return answer.json()

        make.client = client
        yield make
        for each in client.get("/api/v1/webhooks").json()["items"]:
            client.delete(f"/api/v1/webhooks/{each['id']}")


def test_a_new_version_is_delivered_with_a_signature_that_fits(hooks, receiver, told):
    made = hooks(url=receiver.url, host="signed.example")
    told.put("http://signed.example/a.csv", b"1\n")
    wait_until(receiver.events)
    _, headers, body = receiver.taken[0]
    key = base64.b64decode(made["secret"].removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    wanted = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{wanted}"


def test_only_what_was_asked_for_is_delivered_and_in_order(hooks, receiver, told):
    hooks(url=receiver.url, host="wanted.example", kinds=["version"])
    told.put("http://unwanted.example/a.csv", b"1\n")
    told.put("http://wanted.example/a.csv", b"1\n", b"2\n", b"3\n")
    wait_until(lambda: len(receiver.events()) >= 3)
    assert [(event["host"], event["number"]) for event in receiver.events()] == [
        ("wanted.example", number) for number in (1, 2, 3)
    ]


def test_another_state_of_a_resource_is_delivered(hooks, receiver, told):
    named = told.put("http://gone.example/a.csv", b"1\n")
    hooks(url=receiver.url, dataset=named, kinds=["state"])
    told.run("UPDATE resource SET state = 'gone' WHERE resource = %s", named)
    wait_until(receiver.events)
    assert [(event["kind"], event["state"]) for event in receiver.events()] == [("state", "gone")]


def test_what_was_refused_is_delivered_again_under_the_same_id(hooks, receiver, told):
    receiver.statuses[:] = [503]
    hooks(url=receiver.url, host="again.example")
    told.put("http://again.example/a.csv", b"1\n")
    wait_until(receiver.events)
    assert [status for status, _, _ in receiver.taken] == [503, 204]
    assert len({headers["webhook-id"] for _, headers, _ in receiver.taken}) == 1


def test_a_receiver_that_is_gone_is_not_asked_again(hooks, receiver, told):
    receiver.statuses[:] = [410]
    made = hooks(url=receiver.url, host="left.example")
    told.put("http://left.example/a.csv", b"1\n")
    place = f"/api/v1/webhooks/{made['webhook']['id']}"
    wait_until(lambda: hooks.client.get(place).json()["state"] == "stopped")
    stopped = hooks.client.get(place).json()
    assert (stopped["last"]["status"], stopped["seen"]) == (410, made["webhook"]["seen"])


def test_a_redirect_is_not_followed(hooks, receiver, told):
    receiver.statuses[:] = [307]
    hooks(url=receiver.url, host="moved.example")
    told.put("http://moved.example/a.csv", b"1\n")
    wait_until(receiver.events)
    assert [status for status, _, _ in receiver.taken] == [307, 204]


def test_a_delivery_survives_the_death_of_the_service(starting, receiver, tmp_path):
    told = Filled(tmp_path / "killed")
    running = starting(told.data, "--no-crawl", "--allow-private", TAMIAS_SECRET=SECRET)
    headers = {"Authorization": f"Bearer {SECRET}"}
    receiver.statuses[:] = [500]
    asked = {"url": receiver.url, "host": "killed.example"}
    httpx.post(f"{running.address}/api/v1/webhooks", json=asked, headers=headers, timeout=30)
    told.put("http://killed.example/a.csv", b"1\n")
    wait_until(lambda: receiver.taken)
    running.stop(signal.SIGKILL)
    starting(told.data, "--no-crawl", "--allow-private", TAMIAS_SECRET=SECRET)
    wait_until(receiver.events)
    told.close()
    assert [event["url"] for event in receiver.events()] == ["http://killed.example/a.csv"]


def test_a_webhook_that_begins_at_an_event_is_told_of_all_behind_it(hooks, receiver, told):
    told.put("http://history.example/a.csv", b"1\n", b"2\n")
    hooks(url=receiver.url, host="history.example", after=0)
    wait_until(lambda: len(receiver.events()) >= 2)
    assert [event["number"] for event in receiver.events()] == [1, 2]


def test_a_private_address_is_refused_when_a_webhook_is_made(writer):
    answer = writer.post("/api/v1/webhooks", json={"url": "http://127.0.0.1:9/hook"})
    assert (answer.status_code, "allow-private" in answer.json()["detail"]) == (422, True)


def test_a_private_address_is_refused_when_something_is_delivered(receiver):
    posted = post(receiver.url, b"{}", {}, forbidden)
    assert (posted.status, receiver.taken) == (None, [])
    assert "loopback" in posted.trouble


def test_a_name_that_has_become_a_private_address_is_not_connected_to(starting, receiver, tmp_path):
    """As one does that was public when its webhook was made, and as other ways to write an address."""
    told = Filled(tmp_path / "rebound")
    headers = {"Authorization": f"Bearer {SECRET}"}
    running = starting(told.data, "--no-crawl", "--allow-private", TAMIAS_SECRET=SECRET)
    for host in ("localhost", "127.1", "0x7f000001", "2130706433", "[::1]", "[::ffff:127.0.0.1]"):
        asked = {"url": receiver.url.replace("127.0.0.1", host), "host": "rebound.example"}
        made = httpx.post(f"{running.address}/api/v1/webhooks", json=asked, headers=headers, timeout=30)
        assert made.status_code == 201, made.text
    running.stop()
    running = starting(told.data, "--no-crawl", TAMIAS_SECRET=SECRET)
    told.put("http://rebound.example/a.csv", b"1\n")

    def troubles():
        items = httpx.get(f"{running.address}/api/v1/webhooks", headers=headers, timeout=30).json()["items"]
        return [each["last"]["trouble"] for each in items if each["last"] and each["last"]["trouble"]]

    wait_until(lambda: len(troubles()) == 6)
    assert all("loopback" in each and "--allow-private" in each for each in troubles()), troubles()
    assert receiver.taken == []
    told.close()


@pytest.mark.parametrize("url", ["ftp://example.org/", "http://a:b@example.org/", "nonsense", "http://"])
def test_what_is_no_address_of_the_web_is_no_webhook(writer, url):
    assert writer.post("/api/v1/webhooks", json={"url": url}).status_code == 422


def test_webhooks_need_the_secret(client):
    told = [
        client.get("/api/v1/webhooks"),
        client.post("/api/v1/webhooks", json={"url": "http://x.example/"}),
    ]
    assert [each.status_code for each in told] == [401, 401]


def test_the_secret_of_a_webhook_is_told_only_once(hooks, receiver):
    made = hooks(url=receiver.url)
    assert made["secret"] not in hooks.client.get("/api/v1/webhooks").text


def test_pauses_grow_and_the_attempts_end_within_three_days():
    pauses = [pause_ms(attempt) for attempt in range(1, MOST_ATTEMPTS + 1)]
    assert pauses[5] > pauses[2] > pauses[0]
    assert sum(pauses) < 3 * 86_400_000


def streamed(address, until, headers=None):
    """The events that a stream tells before a condition holds, each as a dict of its fields."""
    found = []
    with httpx.stream("GET", f"{address}/api/v1/events", headers=headers, timeout=PATIENCE) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        event = {}
        for line in answer.iter_lines():
            if line:
                name, _, value = line.partition(": ")
                event[name] = value
                continue
            found.append(event)
            event = {}
            if until(found):
                return [each for each in found if "id" in each]
    return found


def test_a_page_hears_of_a_new_version_as_it_comes(served, filled):
    def put_once(found):
        if len(found) == 1:
            filled.put("http://live.example/a.csv", b"1\n")
        return any("live.example" in each.get("data", "") for each in found)

    (event,) = streamed(served.address, put_once)
    told = json.loads(event["data"])
    assert (event["event"], told["url"], told["number"]) == ("version", "http://live.example/a.csv", 1)


def test_a_page_that_comes_back_goes_on_where_it_was(served, filled):
    filled.put("http://back.example/a.csv", b"1\n", b"2\n", b"3\n")
    numbers = filled.rows("SELECT coalesce(max(event), 0) FROM event")[0][0]
    httpx.get(f"{served.address}/ldes", timeout=30)
    last = filled.rows("SELECT max(event) FROM event WHERE number = 1 AND event > %s", numbers)[0][0]

    def until(found):
        return sum("id" in each for each in found) >= 2

    events = streamed(served.address, until, {"Last-Event-ID": str(last)})
    assert [json.loads(each["data"])["number"] for each in events] == [2, 3]


def test_a_place_in_the_stream_that_is_none_is_refused(client):
    assert client.get("/api/v1/events", headers={"Last-Event-ID": "x"}).status_code == 400


def test_a_service_with_listeners_still_stops(starting, filled):
    running = starting(filled.data, "--no-crawl", TAMIAS_SECRET=SECRET)
    with httpx.stream("GET", f"{running.address}/api/v1/events", timeout=PATIENCE) as answer:
        next(answer.iter_lines())
        code, _, _ = running.stop()
    assert code == 0
