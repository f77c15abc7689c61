"""What the log says about its visitors."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor

from tamias.features.demo.plan import make_plan
from tamias.features.demo.server import (
    LoggedRequest,
    max_in_flight,
    requests_of_disallowed,
    serving,
)


def visit(host, path, start, in_flight=1):
    return LoggedRequest(
        host=host, path=path, status=200, start=start, end=start + 1, in_flight=in_flight, agent="a"
    )


LOG = [
    visit("a:1", "/robots.txt", 0.0),
    visit("a:1", "/x", 0.5),
    visit("a:1", "/y", 3.0, in_flight=3),
    visit("a:1", "/x", 2.0),
    visit("b:1", "/x", 2.1),
]


def test_the_most_requests_at_once_are_told_for_each_host():
    assert max_in_flight(LOG) == {"a:1": 3, "b:1": 1}


def test_visits_of_disallowed_pages_are_found_out():
    assert requests_of_disallowed(LOG, {"http://a:1/y", "http://b:1/y"}) == [LOG[2]]


def test_a_request_is_logged_with_its_agent_and_status(get):
    with serving(make_plan(1, nodes=1)) as web:
        get(web.seeds[0], User_Agent="tester/1")
        (seen,) = web.log
    assert (seen.url, seen.status, seen.in_flight, seen.agent) == (web.seeds[0], 200, 1, "tester/1")


def test_requests_that_come_together_are_seen_together(get):
    with serving(make_plan(1, nodes=1), latency=0.5) as web, ThreadPoolExecutor(3) as visitors:
        list(visitors.map(get, [web.seeds[0]] * 3))
    assert list(max_in_flight(web.log).values()) == [3]


def wait_until(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_client_that_leaves_is_logged_and_no_longer_in_flight():
    with serving(make_plan(1, nodes=1), latency=60) as web:
        with socket.create_connection(("127.0.0.1", web.port)) as client:
            client.sendall(b"GET /vocab HTTP/1.1\r\n\r\n")
            wait_until(lambda: web.in_flight.total() == 1)
        wait_until(lambda: web.log)
        assert (web.log[0].status, web.in_flight.total()) == (0, 0)
