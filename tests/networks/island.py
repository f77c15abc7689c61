"""A small internet of its own for one crawl: two network namespaces, a cable, a name service, and hosts.

The crawler's end sees nothing but the island. Needs root and iproute2; `why_not` says what is missing.
"""

import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tamias.model.errors import TamiasError
from tests.networks import island_web
from tests.networks.island_web import GATE, MODE, NET, PAGES

_CRAWLER = "10.76.0.2"
_READY_SECONDS = 20.0


def why_not() -> str | None:
    """Why no island can be made on this machine."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "there is no 'ip' (Debian: iproute2)"
    name = _new_name()
    try:
        _ip("netns", "add", name)
        _ip("-n", name, "link", "set", "lo", "up")
    except TamiasError as error:
        return str(error)
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
    return None


class Island:
    """Made with `with`; what runs there ends with it."""

    def __init__(self, folder: Path, pages: int) -> None:
        """`pages`: of each host that answers."""
        self._folder = folder
        self._pages = pages
        self._here, self._there = _new_name(), _new_name()
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> "Island":
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / PAGES).write_text(str(self._pages))
        try:
            self._connect()
            self.start("dns")
            self.start("web")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self._running):
            self.kill(name)
        for name in (self._here, self._there):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
            shutil.rmtree(f"/etc/netns/{name}", ignore_errors=True)

    def command(self, words: Sequence[str]) -> list[str]:
        """The command as it runs at the crawler's end."""
        return ["ip", "netns", "exec", self._here, *words]

    def popen(self, words: Sequence[str], env: Mapping[str, str], output: Path) -> subprocess.Popen[bytes]:
        """A program at the crawler's end; all it says goes to a file."""
        with output.open("ab") as said:
            return subprocess.Popen(
                self.command(words), stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=dict(env)
            )

    def start(self, what: str) -> None:
        """The name service (`dns`) or the hosts (`web`)."""
        ready = self._folder / f"{what}-ready"
        ready.unlink(missing_ok=True)
        program = [sys.executable, island_web.__file__, what, str(self._folder)]
        with (self._folder / f"{what}-said").open("ab") as said:
            self._running[what] = subprocess.Popen(
                ["ip", "netns", "exec", self._there, *program], stdout=said, stderr=said
            )
        deadline = time.monotonic() + _READY_SECONDS
        while not ready.exists():
            if time.monotonic() > deadline or self._running[what].poll() is not None:
                raise TamiasError(f"the island's {what} did not start")
            time.sleep(0.02)

    def kill(self, what: str) -> None:
        """The name service or the hosts, at once."""
        process = self._running.pop(what)
        process.kill()
        process.wait()

    def names(self, mode: str) -> None:
        """How the name service answers: `ok`, `servfail` or `silent`."""
        (self._folder / MODE).write_text(mode)

    def cable(self, *, plugged: bool) -> None:
        """The cable between the crawler and everything else."""
        _ip("-n", self._there, "link", "set", "gate", "up" if plugged else "down")
        if plugged:
            self._routes()

    def _connect(self) -> None:
        for name in (self._here, self._there):
            _ip("netns", "add", name)
            _ip("-n", name, "link", "set", "lo", "up")
        _ip(
            "-n",
            self._there,
            "link",
            "add",
            "gate",
            "type",
            "veth",
            "peer",
            "name",
            "net",
            "netns",
            self._here,
        )
        _ip("-n", self._there, "addr", "add", f"{GATE}/24", "dev", "gate")
        _ip("-n", self._here, "addr", "add", f"{_CRAWLER}/24", "dev", "net")
        _ip("-n", self._there, "link", "set", "gate", "up")
        _ip("-n", self._here, "link", "set", "net", "up")
        _ip("-n", self._here, "route", "add", "default", "via", GATE)
        self._routes()
        folder = Path(f"/etc/netns/{self._here}")
        folder.mkdir(parents=True)
        (folder / "resolv.conf").write_text(f"nameserver {GATE}\noptions timeout:2 attempts:2\n")

    def _routes(self) -> None:
        """Hosts that answer or are silent are here; packets to the dead ones are dropped."""
        for net in (77, 79):
            _ip("-n", self._there, "route", "replace", "local", NET.format(net=net), "dev", "lo")
        _ip("-n", self._there, "route", "replace", "blackhole", NET.format(net=78))
        forward = ["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]
        subprocess.run(["ip", "netns", "exec", self._there, *forward], check=True)


def _new_name() -> str:
    return f"tamias-{secrets.token_hex(4)}"


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], check=False, capture_output=True, text=True)
    if done.returncode:
        raise TamiasError(f"ip {' '.join(words)}: {done.stderr.strip()}")
