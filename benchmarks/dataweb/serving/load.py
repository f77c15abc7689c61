"""How fast the servers alone are: by wrk where it is installed, otherwise by a plain client of ours."""

import re
import shutil
import socket
import subprocess
import time
from pathlib import Path

import msgspec

from benchmarks.dataweb.serving.serving import serving
from benchmarks.dataweb.trial import site
from benchmarks.dataweb.web.web import OrcaWeb

SECONDS = 3
BATCH = 50
_RATE = re.compile(rb"Requests/sec:\s+([\d.]+)")


class ServerSpeed(msgspec.Struct, frozen=True):
    """Requests a second that the servers answered."""

    tool: str
    per_second: float


def load(web: OrcaWeb, folder: Path) -> ServerSpeed:
    """Asks the first node for one resource over and over."""
    node = web.plan.nodes[0]
    path = next(iter(web.nodes[node.address].pages))
    with serving(lambda address: site(web, address), web.ports, folder):
        program = shutil.which("wrk")
        if program:
            url = f"http://{node.address}:{web.ports.http}{path}"
            command = [program, "-t1", "-c64", f"-d{SECONDS}s", "-H", "Accept: text/turtle", url]
            said = subprocess.run(command, capture_output=True, timeout=60, check=True).stdout
            found = _RATE.search(said)
            return ServerSpeed("wrk, 64 connections", float(found[1]) if found else 0.0)
        return ServerSpeed(
            "a client of ours on one connection (wrk is not installed), so at least", plain(web, path)
        )


def plain(web: OrcaWeb, path: str) -> float:
    """Requests a second of one connection that sends them in batches."""
    address = web.plan.nodes[0].address
    request = f"GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: text/turtle\r\n\r\n".encode()
    answered, began = 0, time.monotonic()
    with socket.create_connection((address, web.ports.http)) as server:
        while time.monotonic() - began < SECONDS:
            server.sendall(request * BATCH)
            waiting = BATCH
            while waiting > 0:
                got = server.recv(1 << 20)
                if not got:
                    return 0.0
                waiting -= got.count(b"HTTP/1.1 ")
            answered += BATCH
    return answered / (time.monotonic() - began)
