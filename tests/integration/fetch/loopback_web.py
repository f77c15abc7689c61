"""A web of loopback hosts whose answers a test writes byte by byte."""

import asyncio
import contextlib
import re
import socket
import time

from tamias.fetch.credentials import HttpOptions
from tamias.fetch.http import HttpFetcher
from tamias.model.capture import Request


def ok(body=b"", *fields):
    """The bytes of a plain success."""
    head = [b"HTTP/1.1 200 OK", b"Content-Length: %d" % len(body), *fields]
    return b"\r\n".join(head) + b"\r\n\r\n" + body


async def go_anywhere(target):
    return None


async def until(condition):
    """Waits for what happens elsewhere in the loop, ten seconds at most."""
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise TimeoutError


class Web:
    """Answers on every 127.x.y.z at one port, and a fetcher to ask them."""

    def __init__(self, spool_dir):
        self.socket = socket.create_server(("0.0.0.0", 0), backlog=512)
        self.port = self.socket.getsockname()[1]
        self.answers = {}
        self.requests = []
        self.bodies = []
        self.connections = 0
        self.spool_dir = spool_dir
        self.forbidden = lambda address: None
        self.tls = None

    def url(self, path, host="127.0.0.1"):
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}{path}"

    def fetch(self, path, *, follow=go_anywhere, settings=None, **request):
        return self.run(
            lambda fetcher: fetcher.fetch(Request(url=self.url(path), **request), follow), settings
        )

    def run(self, use, settings=None):
        """What `use(fetcher)` returns, with the web up."""

        async def main():
            async with asyncio.timeout(30):
                server = await asyncio.start_server(self._serve, sock=self.socket, ssl=self.tls)
                fetcher = self.fetcher(settings or {})
                try:
                    return await use(fetcher)
                finally:
                    await fetcher.close()
                    server.close()
                    await asyncio.sleep(0)

        return asyncio.run(main())

    def fetcher(self, settings):
        return HttpFetcher(
            HttpOptions(user_agent="Tamias/test", spool_dir=str(self.spool_dir), **settings),
            forbidden=self.forbidden,
            now=lambda: time.time_ns() // 1_000_000,
            retry_after=lambda value, now: int(value) * 1000 if value else None,
        )

    def spooled(self):
        return sorted(self.spool_dir.iterdir())

    async def _serve(self, reader, writer):
        self.connections += 1
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.requests.append(head)
                length = re.search(rb"\r\nContent-Length: (\d+)", head)
                self.bodies.append(await reader.readexactly(int(length[1])) if length else b"")
                answer = self.answers[head.split()[1].decode()]
                if callable(answer):
                    await answer(writer)
                else:
                    writer.write(answer)
                await writer.drain()
                if callable(answer) or b"Content-Length:" not in answer:
                    break
        writer.close()
