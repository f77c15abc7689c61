"""A small anonymous FTP server that only gives: a folder tree for each loopback address, from memory."""

import asyncio
import socket
from collections.abc import Mapping
from contextlib import suppress
from posixpath import join, normpath

from benchmarks.dataweb.serving.server import LOOPBACK, Log

LINE_SECONDS = 120.0
DATA_SECONDS = 30.0
PLAIN = {
    "USER": "331 any password", "PASS": "230 welcome", "TYPE": "200 fine", "NOOP": "200 fine",
    "SYST": "215 UNIX Type: L8", "OPTS": "200 fine", "MODE": "200 fine", "STRU": "200 fine",
}  # fmt: skip
Trees = Mapping[str, Mapping[str, bytes]]


class FtpSession:
    """One control connection."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, trees: Trees, log: Log
    ) -> None:
        self._reader, self._writer, self._log = reader, writer, log
        self._address = writer.get_extra_info("sockname")[0]
        self._files = trees.get(self._address, {})
        self._folder = "/"
        self._passive: socket.socket | None = None

    async def run(self) -> None:
        """Until the client leaves."""
        if not self._address.startswith(LOOPBACK):
            return
        self._say("220 files of the benchmark")
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
            while True:
                line = await asyncio.wait_for(self._reader.readline(), LINE_SECONDS)
                verb, _, word = line.decode(errors="replace").strip().partition(" ")
                if not line or verb.upper() == "QUIT":
                    break
                await self._obey(verb.upper(), word)
                await self._writer.drain()

    async def _obey(self, verb: str, word: str) -> None:
        path = "/" + normpath(join(self._folder, word)).lstrip("/")
        match verb:
            case "PWD":
                self._say(f'257 "{self._folder}"')
            case "CWD" if self._is_folder(path):
                self._folder = path
                self._say("250 fine")
            case "FEAT":
                self._say("211-these\r\n MLST type*;size*;\r\n SIZE\r\n EPSV\r\n UTF8\r\n211 end")
            case "SIZE" if path in self._files:
                self._say(f"213 {len(self._files[path])}")
            case "EPSV" | "PASV":
                self._open(verb)
            case "MLSD" | "LIST" | "NLST" if self._is_folder(path):
                await self._send(self._listing(path, verb))
            case "RETR" if path in self._files:
                self._log.note(self._address, "200", path)
                await self._send(self._files[path])
            case _:
                self._say(PLAIN.get(verb, "550 no"))

    def _say(self, text: str) -> None:
        self._writer.write(f"{text}\r\n".encode())

    def _is_folder(self, path: str) -> bool:
        return any(name.startswith(path.rstrip("/") + "/") for name in self._files)

    def _listing(self, path: str, verb: str) -> bytes:
        start = path.rstrip("/") + "/"
        inside = [name.removeprefix(start) for name in self._files if name.startswith(start)]
        folders = sorted({name.partition("/")[0] for name in inside if "/" in name})
        files = {name: len(self._files[start + name]) for name in sorted(inside) if "/" not in name}
        if verb == "MLSD":
            lines = [f"type=dir; {name}" for name in folders]
            lines += [f"type=file;size={size}; {name}" for name, size in files.items()]
        elif verb == "LIST":
            lines = [f"drwxr-xr-x 1 ftp ftp 0 Jan 01 2020 {name}" for name in folders]
            lines += [f"-rw-r--r-- 1 ftp ftp {size} Jan 01 2020 {name}" for name, size in files.items()]
        else:
            lines = [*folders, *files]
        return "".join(f"{line}\r\n" for line in lines).encode()

    def _open(self, verb: str) -> None:
        self.close()
        self._passive = socket.create_server((self._address, 0))
        self._passive.setblocking(False)
        port = self._passive.getsockname()[1]
        if verb == "EPSV":
            self._say(f"229 entering (|||{port}|)")
        else:
            self._say(f"227 entering ({self._address.replace('.', ',')},{port >> 8},{port & 255})")

    async def _send(self, data: bytes) -> None:
        if self._passive is None:
            self._say("425 no data connection")
            return
        self._say("150 here it comes")
        loop = asyncio.get_running_loop()
        client, _ = await asyncio.wait_for(loop.sock_accept(self._passive), DATA_SECONDS)
        with client:
            await asyncio.wait_for(loop.sock_sendall(client, data), DATA_SECONDS)
        self.close()
        self._say("226 done")

    def close(self) -> None:
        """Gives up the data port."""
        if self._passive is not None:
            self._passive.close()
            self._passive = None


async def serve_ftp(listening: socket.socket, trees: Trees, log: Log) -> asyncio.Server:
    """Begins to serve the trees, by address."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session = FtpSession(reader, writer, trees, log)
        try:
            await session.run()
        finally:
            session.close()
            writer.close()

    return await asyncio.start_server(converse, sock=listening)
