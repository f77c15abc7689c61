"""FTP servers on the loopback address: a real one over a folder, and one whose every reply a test writes."""

import asyncio
import contextlib
import logging
import socket
import threading
import time
import warnings

from loopback_web import go_anywhere

from tamias.features.ftp.fetcher import FtpFetcher
from tamias.fetch.credentials import HttpOptions
from tamias.model.capture import Request

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it is built on asyncore, as long as there is one
    from pyftpdlib.authorizers import DummyAuthorizer
    from pyftpdlib.handlers import FTPHandler
    from pyftpdlib.ioloop import IOLoop
    from pyftpdlib.servers import FTPServer

logging.getLogger("pyftpdlib").setLevel(logging.CRITICAL)


class Asking:
    """Asks the server at `port` through a fetcher."""

    port = 0
    spool_dir = None
    scheme = "ftp"

    def __init__(self, spool_dir):
        self.spool_dir = spool_dir
        self.forbidden = lambda address: None

    def url(self, path, user=""):
        return f"{self.scheme}://{user}127.0.0.1:{self.port}{path}"

    def fetch(self, path, *, user="", follow=go_anywhere, settings=None, **request):
        asked = Request(url=self.url(path, user), **request)
        return self.run(lambda fetcher: fetcher.fetch(asked, follow), settings)

    def run(self, use, settings=None):
        """What `use(fetcher)` returns, with the server up."""

        async def main():
            async with asyncio.timeout(30), self.serving():
                fetcher = FtpFetcher(
                    HttpOptions(
                        user_agent="Tamias/test (+me)", spool_dir=str(self.spool_dir), **(settings or {})
                    ),
                    forbidden=self.forbidden,
                    now=lambda: time.time_ns() // 1_000_000,
                    retry_after=lambda value, now: None,
                )
                try:
                    return await use(fetcher)
                finally:
                    await fetcher.close()

        return asyncio.run(main())

    @contextlib.asynccontextmanager
    async def serving(self):
        yield

    def spooled(self):
        return sorted(self.spool_dir.iterdir())


class Site(Asking):
    """A pyftpdlib server over a folder, in a thread; tells which commands it got."""

    def __init__(self, folder, spool_dir, handler=FTPHandler, **settings):
        super().__init__(spool_dir)
        self.commands = []
        accounts = DummyAuthorizer()
        accounts.add_anonymous(str(folder))
        accounts.add_user("me", "secret", str(folder))
        noted = self.commands

        def pre_process_command(self, line, cmd, arg):
            noted.append(line)
            handler.pre_process_command(self, line, cmd, arg)

        chosen = {"authorizer": accounts, "pre_process_command": pre_process_command, **settings}
        self._server = FTPServer(("127.0.0.1", 0), type("Noting", (handler,), chosen), ioloop=IOLoop())
        self.port = self._server.address[1]
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self):
        self._ending.set()
        self._thread.join()

    def verbs(self):
        return [line.split()[0] for line in self.commands]

    def _serve(self):
        while not self._ending.is_set():
            self._server.serve_forever(timeout=0.02, blocking=False)
        self._server.close_all()


class Script(Asking):
    """A server that answers each command as the test says: bytes, or a function of the session."""

    def __init__(self, spool_dir):
        super().__init__(spool_dir)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.tls = None
        self.implicit = False
        self.commands = []
        self.greeting = b"220 here\r\n"
        self.replies = {
            "AUTH": b"502 no\r\n",
            "USER": b"331 and?\r\n",
            "PASS": b"230 in\r\n",
            "PWD": b'257 "/"\r\n',
            "CWD": b"250 there\r\n",
            "TYPE": b"200 so be it\r\n",
            "PBSZ": b"200 0\r\n",
            "PROT": b"200 protected\r\n",
            "QUIT": b"221 bye\r\n",
            "EPSV": Session.extended_passive,
        }

    def sends(self, verb, content, last=b"226 done\r\n"):
        """Makes a command answer with this on the data connection."""

        async def send(session):
            await session.send(content, last)

        self.replies[verb] = send

    def verbs(self):
        return [line.split()[0] for line in self.commands]

    @contextlib.asynccontextmanager
    async def serving(self):
        implicit = self.tls if self.implicit else None
        server = await asyncio.start_server(self._serve, sock=self.socket, ssl=implicit)
        try:
            yield
        finally:
            server.close()
            await asyncio.sleep(0)

    async def _serve(self, reader, writer):
        session = Session(self, reader, writer)
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            await session.serve()
        session.hang_up_data()
        writer.close()


class Session:
    """One control connection of a `Script`."""

    def __init__(self, script, reader, writer):
        self.script, self.reader, self.writer = script, reader, writer
        self.protected = script.implicit
        self.listener = None
        self.taken = []

    async def serve(self):
        self.writer.write(self.script.greeting)
        while line := await self.reader.readline():
            self.script.commands.append(line.decode("latin-1").rstrip())
            reply = self.script.replies.get(line[:4].decode().strip().upper(), b"502 not here\r\n")
            if callable(reply):
                await reply(self)
            else:
                self.writer.write(reply)
            await self.writer.drain()

    async def accept_tls(self):
        self.writer.write(b"234 go\r\n")
        await self.writer.drain()
        self.protected = True
        await self.writer.start_tls(self.script.tls)

    async def extended_passive(self):
        self.writer.write(b"229 Entering (|||%d|)\r\n" % await self.listen())

    async def listen(self):
        self.hang_up_data()
        self.data = data = asyncio.Queue()

        async def take(_reader, writer):
            data.put_nowait(writer)
            self.taken.append(writer)

        tls = self.script.tls if self.protected else None
        self.listener = await asyncio.start_server(take, "127.0.0.1", 0, ssl=tls)
        return self.listener.sockets[0].getsockname()[1]

    def hang_up_data(self):
        if self.listener is not None:
            self.listener.close()
        for writer in self.taken:
            writer.close()
        self.taken.clear()

    async def send(self, content, last):
        self.writer.write(b"150 coming\r\n")
        data = await self.data.get()
        self.listener.close()
        data.write(content)
        data.close()
        await data.wait_closed()
        self.writer.write(last)
