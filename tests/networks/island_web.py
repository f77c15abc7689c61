"""The web of an island, as processes in its network namespace: a name service, and hosts of every kind.

`python island_web.py dns|web FOLDER`.

Names: `h7.example` answers; packets to `d7.example` are
dropped; `t7.example` takes connections and says nothing; there is no route to `n7.example`; others do not
exist. Ports other than 80 are closed.
"""

import asyncio
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.networks.names import NXDOMAIN, OK, SERVFAIL, DnsQuestion, DnsServer

_NAME = re.compile(r"(?P<kind>[hdtn])(?P<number>[0-9]{1,5})\.example")
_NETS = {"h": 77, "d": 78, "t": 79, "n": 80}
NET = "10.{net}.0.0/16"
GATE = "10.76.0.1"
"""Where the name service listens."""
PAGES = "pages"
MODE = "dns-mode"
LOG = "requests"


def address(name: str) -> str | None:
    """The address of a name; None where there is no such name.

    >>> address("h300.example"), address("x.example")
    ('10.77.1.44', None)
    """
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    number = int(found["number"])
    return f"10.{_NETS[found['kind']]}.{number >> 8}.{number & 255}"


def page(name: str, path: str, pages: int) -> bytes | None:
    """A page of a host that answers: Turtle, linking to the next ones."""
    if path == "/":
        links = "".join(f"<> <urn:island:part> </{number}> .\n" for number in range(1, pages))
        return f'<> <urn:island:of> "{name}" .\n{links}'.encode()
    number = path[1:]
    if not number.isdigit() or int(number) >= pages:
        return None
    return f'<> <urn:island:number> {number} ; <urn:island:of> "{name}" .\n'.encode()


class _IslandNames(DnsServer):
    """The mode stands in a file: empty, `servfail` or `silent`."""

    def __init__(self, folder: Path) -> None:
        self._mode = folder / MODE

    def answer(self, question: DnsQuestion) -> tuple[int, Sequence[str]] | None:
        mode = self._mode.read_text() if self._mode.exists() else ""
        if mode == "silent":
            return None
        found = address(question.name)
        code = SERVFAIL if mode == "servfail" else NXDOMAIN if found is None else OK
        return code, [found] if found and code == OK and question.wants_address else []


class _Web:
    def __init__(self, folder: Path) -> None:
        self._pages = int((folder / PAGES).read_text())
        self._log = (folder / LOG).open("a", buffering=1)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._talk(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        here = writer.get_extra_info("sockname")[0]
        if here.startswith("10.79."):
            await asyncio.sleep(3600)
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            path = head.split(" ", 2)[1]
            name = next(line[6:] for line in head.split("\r\n") if line.lower().startswith("host: "))
            self._log.write(f"{name}{path}\n")
            body = page(name, path, self._pages)
            status = "404 Not Found" if body is None else "200 OK"
            body = body or b""
            lines = f"HTTP/1.1 {status}\r\nContent-Type: text/turtle\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(lines.encode() + body)
            await writer.drain()


async def _main(what: str, folder: Path) -> None:
    loop = asyncio.get_running_loop()
    if what == "dns":
        await loop.create_datagram_endpoint(lambda: _IslandNames(folder), local_addr=(GATE, 53))
    else:
        await asyncio.start_server(_Web(folder).serve, "0.0.0.0", 80, backlog=4096)
    (folder / f"{what}-ready").touch()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], Path(sys.argv[2])))
