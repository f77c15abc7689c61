"""Machines on one machine: namespaces of their own, on a network that leads nowhere else."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from servers.packages import NotRun

NETWORK = "10.77.0"
HUB = "tamias-hub"


class Machine:
    """Its files: those of this machine, which it cannot change, and a folder that nobody else sees."""

    def __init__(self, name: str, number: int, folder: Path, pid: int) -> None:
        self.name = name
        self.address = f"{NETWORK}.{number}"
        self.folder = folder
        self._pid = pid

    def command(self, *words: str | Path) -> list[str]:
        """What runs a command there."""
        # Not by --wd of nsenter, which opens the folder of this machine.
        there = ["nsenter", "-t", str(self._pid), "-n", "-m", "sh", "-c", 'cd "$0" && exec "$@"', self.folder]
        return [str(each) for each in (*there, *words)]

    def run(
        self, *words: str | Path, environment: Mapping[str, str] | None = None, seconds: float = 300
    ) -> subprocess.CompletedProcess[str]:
        """Runs it to its end."""
        return subprocess.run(
            self.command(*words),
            check=False,
            capture_output=True,
            text=True,
            timeout=seconds,
            env={**os.environ, **(environment or {})},
        )

    @contextmanager
    def running(
        self, *words: str | Path, environment: Mapping[str, str] | None = None
    ) -> Iterator["subprocess.Popen[str]"]:
        """Runs it until the end of the block; what it says goes to a file."""
        with (self.log).open("a+") as log:
            process = subprocess.Popen(
                self.command(*words), stdout=log, stderr=log, text=True,
                env={**os.environ, **(environment or {})},
            )  # fmt: skip
            try:
                yield process
            finally:
                process.terminate()
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    @property
    def log(self) -> Path:
        """What the programs there have said, for this machine to read."""
        return self.folder.parent / f"{self.name}.log"

    def wait_for(self, port: int, seconds: float = 60) -> None:
        """Waits until somebody listens there."""
        probe = f"import socket; socket.create_connection(({self.address!r}, {port}), 1)"
        deadline = time.monotonic() + seconds
        while self.run(sys.executable, "-c", probe).returncode:
            if time.monotonic() > deadline:
                raise NotRun(f"nobody listens at {self.address}:{port}: {self.log.read_text()[-400:]}")
            time.sleep(0.2)


@contextmanager
def machines(names: list[str], folder: Path) -> Iterator[dict[str, Machine]]:
    """So many, connected with each other, until the end of the block."""
    if os.geteuid() != 0 or not all(shutil.which(each) for each in ("ip", "unshare", "nsenter", "findmnt")):
        raise NotRun("network and mount namespaces need root, iproute2 and util-linux")
    private = folder / "machine"
    private.mkdir(parents=True)
    with ExitStack() as stack:
        _netns(stack, HUB)
        _ip("netns", "exec", HUB, "ip", "link", "add", "hub", "type", "bridge")
        _ip("netns", "exec", HUB, "ip", "link", "set", "hub", "up")
        made = {}
        for number, name in enumerate(names, 1):
            made[name] = Machine(name, number, private, _start(stack, name, number, private))
        yield made


def _start(stack: ExitStack, name: str, number: int, private: Path) -> int:
    """The process that keeps a machine's namespaces."""
    own, there = f"tamias-{name}", f"to-{name}"
    _netns(stack, own)
    _ip("link", "add", "eth0", "netns", own, "type", "veth", "peer", "name", there, "netns", HUB)
    _ip("netns", "exec", HUB, "ip", "link", "set", there, "master", "hub", "up")
    for words in (("addr", "add", f"{NETWORK}.{number}/24", "dev", "eth0"), ("link", "set", "eth0", "up"),
                  ("link", "set", "lo", "up")):  # fmt: skip
        _ip("netns", "exec", own, "ip", *words)
    shared = private.parent  # which may be on another file system than all else
    script = (
        f"mount --bind '{shared}' '{shared}' && mount -t tmpfs -o mode=0755 {name} '{private}' && "
        f"mount -o remount,bind,ro '{shared}' && mount -o remount,bind,ro / && "
        "echo ready && exec sleep infinity"
    )
    process = stack.enter_context(
        subprocess.Popen(
            ["ip", "netns", "exec", own, "unshare", "-m", "--propagation", "private", "sh", "-c", script],
            stdout=subprocess.PIPE,
        )
    )
    stack.callback(process.kill)
    assert process.stdout is not None
    if process.stdout.readline() != b"ready\n":
        raise NotRun("mounts of one's own are not allowed here")
    return process.pid


def _netns(stack: ExitStack, name: str) -> None:
    _ip("netns", "add", name)
    stack.callback(subprocess.run, ["ip", "netns", "delete", name], check=False)


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], check=False, capture_output=True, text=True)
    if done.returncode:
        raise NotRun(f"ip {' '.join(words)}: {done.stderr.strip()}")
