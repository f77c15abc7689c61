"""What is forgotten is neither taken from a plain client nor given to one."""

import time

from frontier_client import discovered, known

from tamias.archive.tombstones import lift, order
from tamias.model.resource import resource_id

OK, SKIPPED = 0, 1
GONE, OTHER = "http://a.example/gone", "http://a.example/other"
REFRESHED = 2.2


def forget(session, url):
    order(session, [(resource_id(url), url, None)], "asked for", "me")
    time.sleep(REFRESHED)


def test_a_forgotten_url_is_skipped_in_every_spelling_and_not_given(client, frontier_session):
    client.call("SetDelay", delay_ms=0)
    client.discover(GONE, OTHER, key="queue of the client")
    forget(frontier_session, GONE)
    try:
        assert client.get(urls=10, hold=1) == [OTHER]
        spelled = [discovered(GONE), discovered("http://A.example:80/gone#x"), known(GONE, 0)]
        answers = client.put(*spelled, discovered("http://a.example/new"))
        assert [status for _, status in answers] == [SKIPPED, SKIPPED, SKIPPED, OK]
        time.sleep(1.1)
        assert sorted(client.get(urls=10, hold=1)) == ["http://a.example/new", OTHER]
    finally:
        lift(frontier_session, [resource_id(GONE)], "me")
    time.sleep(REFRESHED)
    assert client.discover(GONE) == [OK]
    assert GONE in client.get(urls=10, hold=1)
