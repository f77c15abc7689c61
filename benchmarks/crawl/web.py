"""Serves a site with nginx on loopback addresses only, and counts in its log what was fetched."""

import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from benchmarks.crawl.site import StaticSite
from benchmarks.measuring.children import running
from benchmarks.measuring.reaper import end_with_parent
from tamias.model.errors import TamiasError

START_SECONDS = 20.0
CONNECTIONS = 4_096

CONFIGURATION = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log error;
worker_rlimit_nofile {descriptors};
events {{ worker_connections {connections}; }}
http {{
    log_format visit '$status $server_addr $request_uri';
    access_log {folder}/access.log visit;
    types {{ text/html html; }}
    charset utf-8;
    sendfile on;
    tcp_nodelay on;
    keepalive_timeout 60s;
    keepalive_requests 100000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        {listen}
        root {site}/$server_addr;
    }}
}}
"""


class Visits(msgspec.Struct, frozen=True):
    """What one tool asked of the server."""

    pages: int
    """Different pages given out."""
    repeats: int
    """Pages given out more than once, counted from the second time."""
    robots: int
    """Requests for robots.txt, all answered 404."""
    other: int
    """Anything else, such as addresses that no page links to."""


def find_nginx() -> str:
    """The program, which Debian keeps where ordinary users do not look."""
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if found is None:
        raise TamiasError("the crawl benchmark needs nginx; install it (Debian: apt-get install nginx-light)")
    return found


@contextmanager
def serving(site: StaticSite, folder: Path) -> Iterator[Path]:
    """Serves while the block runs; gives the log, which is whole when the block is left."""
    folder.mkdir(parents=True)
    conf, errors, out = (folder / name for name in ("nginx.conf", "error.log", "nginx.out"))
    conf.write_text(configuration(site, folder), encoding="utf-8")
    command = [find_nginx(), "-p", str(folder), "-c", str(conf), "-e", str(errors)]
    # It notes its number when it has its ports. A connection could be a stranger's.
    ready = (folder / "nginx.pid").exists
    with (
        out.open("wb") as said,
        running(
            command, ready=ready, seconds=START_SECONDS, logs=(errors, out),
            stdin=subprocess.DEVNULL, stdout=said, stderr=said, preexec_fn=end_with_parent,
        ),
    ):  # fmt: skip
        yield folder / "access.log"


def configuration(site: StaticSite, folder: Path) -> str:
    """nginx's own file. A listening socket takes a connection and a descriptor, so there must be enough."""
    connections = CONNECTIONS + site.size.hosts
    return CONFIGURATION.format(
        folder=folder,
        site=site.folder,
        connections=connections,
        descriptors=2 * connections,
        listen="\n        ".join(f"listen {address}:{site.port};" for address in site.addresses),
    )


def read_visits(log: Path) -> Visits:
    """Counts the log of one tool's crawl."""
    answered: Counter[str] = Counter()
    robots = other = 0
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            status, _, target = line.rstrip("\n").partition(" ")
            if target.endswith(" /robots.txt"):
                robots += 1
            elif status == "200":
                answered[target] += 1
            else:
                other += 1
    return Visits(len(answered), answered.total() - len(answered), robots, other)
