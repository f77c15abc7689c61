"""A body in tiny pieces costs its reader more than its sender: it is cut off; small bodies may come so."""

import asyncio

from benchmarks.webs.server import head
from tamias.fetch.credentials import HttpOptions
from tamias.fetch.http import HttpFetcher
from tamias.model.capture import Outcome, Request
from tests.hostile.web.wire import VirtualHosts, endless, raw
from tests.messages import unsaid

CHUNKED = head(200, [("Content-Type", "text/plain"), ("Transfer-Encoding", "chunked")])


def fetched(answer, spool):
    """What comes of one answer."""

    async def fetch():
        web = VirtualHosts({"127.0.0.1": {"/": answer}})
        await web.listen("127.0.0.1", 0)
        options = HttpOptions(user_agent="tamias/test", spool_dir=str(spool))
        fetcher = HttpFetcher(
            options, forbidden=lambda _: None, now=lambda: 0, retry_after=lambda _value, _now: None
        )
        try:
            return await fetcher.fetch(Request(url=f"http://127.0.0.1:{web.port}/"), go_on)
        finally:
            await fetcher.close()
            await web.close()

    return asyncio.run(fetch())


async def go_on(_target):
    return None


def test_a_body_without_an_end_in_chunks_of_four_bytes_is_cut_off(tmp_path):
    capture = fetched(endless(CHUNKED, b"4\r\ndust\r\n"), tmp_path)
    assert capture.outcome is Outcome.FAILED
    assert not unsaid(capture.reason, "64")


def test_a_small_body_may_come_in_chunks_of_one_byte(tmp_path):
    capture = fetched(raw(CHUNKED + b"1\r\nx\r\n" * 50_000 + b"0\r\n\r\n"), tmp_path)
    assert capture.outcome is Outcome.OK
    assert capture.body.size == 50_000
