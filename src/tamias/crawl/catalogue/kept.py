"""A Tamias process and the SPARQL server of its data: sees to it that a keeper is there, gets connections."""

import shutil
import socket
import time
from pathlib import Path

import msgspec

from tamias.crawl.catalogue.errors import StoreAway, StoreError
from tamias.crawl.catalogue.exchange import KEPT
from tamias.crawl.catalogue.keeper import ADOPT, CONNECT, Orders, RunningCatalogue
from tamias.database.child_server import ServerUse
from tamias.database.disk import refusals
from tamias.database.locks import is_free
from tamias.service_client import ServiceClient

QUERY_SECONDS = 60.0
_ADOPT_SECONDS = 150.0
_CONNECT_SECONDS = 30.0
_IDLE_SECONDS = 600


class KeptStore(ServerUse):
    """This process's use of the store of one data directory, from now until `close`. For any thread."""

    keeper = "tamias.crawl.catalogue.keeper"
    failure = StoreError
    unavailable = StoreError
    unanswered = StoreAway
    query_url = f"{KEPT}/query"

    def __init__(self, data: Path, *, seconds: float = QUERY_SECONDS, guarded: bool = True) -> None:
        """`seconds` holds for all queries until the server ends; `guarded` is False where nobody else is."""
        self._orders = Orders(str(data.absolute()), seconds, guarded)
        folder = data.absolute() / "catalogue"
        with refusals(folder):
            folder.mkdir(parents=True, mode=0o700, exist_ok=True)
            super().__init__(folder)

    @property
    def seconds(self) -> float:
        """How long the server lets a query run."""
        return self.running().seconds

    def running(self) -> RunningCatalogue:
        """The server as it is now."""
        self._see_to_keeper()
        try:
            return msgspec.json.decode((self.folder / "running.json").read_bytes(), type=RunningCatalogue)
        except FileNotFoundError as error:
            raise StoreAway(f"the SPARQL server of {self.folder} has just ended; try again") from error

    def client(self) -> ServiceClient:
        """A client of HTTP on connections that the keeper gives."""
        return ServiceClient(connect=self._connect, idle_seconds=_IDLE_SECONDS)

    def _connect(self) -> socket.socket:
        """A connection to the server. Raises `StoreAway`."""
        deadline = time.monotonic() + _CONNECT_SECONDS
        while True:
            try:
                return self._connected()
            except (OSError, EOFError) as error:
                if time.monotonic() > deadline:
                    raise StoreAway(f"the SPARQL server of {self.folder} does not answer: {error}") from error
                time.sleep(0.05)

    def adopt(self) -> None:
        """Has the server go on with `store.new` in place of its store."""
        self._see_to_keeper()
        if not (self.folder / "store.new").exists():
            return  # it was there before the keeper was
        with self._asking(ADOPT, _ADOPT_SECONDS) as asking:
            if asking.recv(1) != ADOPT:
                raise StoreError(f"the SPARQL server does not take the new store at {self.folder}")

    def discard(self) -> None:
        """Removes a store that no server starts on. Does nothing where one is running."""
        with self.starting():
            if is_free(self.folder / "keeper.lock"):
                shutil.rmtree(self.folder / "store", ignore_errors=True)

    def _connected(self) -> socket.socket:
        self._see_to_keeper()
        with self._asking(CONNECT, 10.0) as asking:
            word, descriptors, _, _ = socket.recv_fds(asking, 1, 1)
        if word != CONNECT or not descriptors:
            raise EOFError("the keeper gave no connection")
        connection = socket.socket(fileno=descriptors[0])
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def _asking(self, word: bytes, seconds: float) -> socket.socket:
        asking = socket.socket(socket.AF_UNIX)
        try:
            asking.settimeout(seconds)
            asking.connect(f"/proc/self/fd/{self._directory}/socket/ask")
            asking.sendall(word)
        except BaseException:
            asking.close()
            raise
        return asking

    def _see_to_keeper(self) -> None:
        if not self.is_up():
            self.start(msgspec.json.encode(self._orders).decode())
