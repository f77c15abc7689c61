"""PgBouncer, Debian's, before a server that takes nobody without TLS and SCRAM."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from servers.packages import NotRun, debian
from servers.postgres import OWNER, PASSWORD, PostgresServer
from servers.running import free_port
from tamias.features.embedded.server import server_account

PACKAGES = ("pgbouncer", "libc-ares2", "libevent-2.1-7")
_SECONDS = 20.0


@contextmanager
def start(folder: Path, server: PostgresServer, **settings: str) -> Iterator[PostgresServer]:
    """The pooler, to be used as the server is."""
    root = debian(*PACKAGES)
    folder.mkdir(parents=True)
    for name in ("server.crt", "server.key"):
        (folder / name).write_bytes((server.folder / name).read_bytes())
    (folder / "server.key").chmod(0o600)
    (folder / "users.txt").write_text(f'"{OWNER}" "{PASSWORD}"\n', encoding="utf-8")
    port = free_port()
    lines = {
        "listen_addr": "127.0.0.1",
        "listen_port": str(port),
        "unix_socket_dir": "",
        "auth_type": "scram-sha-256",
        "auth_file": str(folder / "users.txt"),
        "client_tls_sslmode": "require",
        "client_tls_key_file": str(folder / "server.key"),
        "client_tls_cert_file": str(folder / "server.crt"),
        "server_tls_sslmode": "require",
        "logfile": str(folder / "pgbouncer.log"),
        **settings,
    }
    told = "\n".join(f"{name} = {value}" for name, value in lines.items())
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n* = host=127.0.0.1 port={server.port}\n[pgbouncer]\n{told}\n", encoding="utf-8"
    )
    pooler = PostgresServer(
        folder,
        port,
        lambda: subprocess.Popen(
            [str(root / "usr/sbin/pgbouncer"), "-q", str(folder / "pgbouncer.ini")],
            cwd=folder,
            env={**os.environ, "LD_LIBRARY_PATH": str(root / "usr/lib/x86_64-linux-gnu")},
            preexec_fn=server_account(folder).enter(ends_with_parent=True),  # noqa: PLW1509 (one thread)
        ),
    )
    try:
        _wait_for(pooler)
        yield pooler
    finally:
        pooler.process.terminate()
        pooler.process.wait(10)


def _wait_for(pooler: PostgresServer) -> None:
    deadline = time.monotonic() + _SECONDS
    while True:
        try:
            psycopg.connect(pooler.url("postgres")).close()
        except psycopg.OperationalError as error:
            if pooler.process.poll() is not None or time.monotonic() > deadline:
                raise NotRun(f"PgBouncer did not start: {error}") from None
            time.sleep(0.05)
        else:
            return
