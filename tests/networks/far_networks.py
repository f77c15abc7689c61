"""Two networks with two cables between them: servers here, workers there, the service's cable can be pulled.

Needs root and iproute2; `island.why_not` says what is missing.
"""

import ctypes
import secrets
import subprocess
from pathlib import Path

from tamias.model.errors import TamiasError

SERVICE_NET, WEB_NET = "10.78.1", "10.78.2"
SERVICE = f"{SERVICE_NET}.1"
"""Where the service is to listen."""
_CABLES = {"service": SERVICE_NET, "web": WEB_NET}


class FarNetworks:
    """Made with `with`; gone with it."""

    def __init__(self, hosts: int) -> None:
        """`hosts`: addresses of the servers' end."""
        self.web = [f"{WEB_NET}.{number}" for number in range(1, hosts + 1)]
        """Where sites are to listen."""
        self.servers, self.workers = (f"tamias-{secrets.token_hex(4)}" for _ in range(2))

    def __enter__(self) -> "FarNetworks":
        try:
            for name in (self.servers, self.workers):
                _ip("netns", "add", name)
                _ip("-n", name, "link", "set", "lo", "up")
            for cable in _CABLES:
                self._connect(cable)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in (self.servers, self.workers):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)

    def plug(self, *, plugged: bool) -> None:
        """The cable between the workers and their service."""
        _ip("-n", self.servers, "link", "set", "service", "up" if plugged else "down")

    def _connect(self, cable: str) -> None:
        peer = ("peer", "name", cable, "netns", self.workers)
        _ip("-n", self.servers, "link", "add", cable, "type", "veth", *peer)
        for number in range(1, len(self.web) + 1):
            _ip("-n", self.servers, "addr", "add", f"{_CABLES[cable]}.{number}/24", "dev", cable)
        _ip("-n", self.workers, "addr", "add", f"{_CABLES[cable]}.99/24", "dev", cable)
        for name in (self.servers, self.workers):
            _ip("-n", name, "link", "set", cable, "up")


def command_in(namespace: str) -> list[str]:
    """What stands before a command that runs there."""
    return ["ip", "netns", "exec", namespace]


def enter(namespace: str) -> None:
    """From now on sockets of this thread are made there."""
    with Path(f"/run/netns/{namespace}").open() as place:
        if ctypes.CDLL(None, use_errno=True).setns(place.fileno(), 0) != 0:
            raise TamiasError(f"cannot enter the network namespace {namespace}")


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], check=False, capture_output=True, text=True)
    if done.returncode:
        raise TamiasError(f"ip {' '.join(words)}: {done.stderr.strip()}")
