"""A PostgreSQL server of our own on the loopback address, which can die and freeze as others do."""

import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from tamias.features.embedded import server
from tamias.features.embedded.server import server_account
from tests.ports import free_port

PASSWORD = "s3cret-w0rd"
PATIENCE = 120.0
_SET = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off"}


class DatabaseServer:
    """A server that asks for a password; it has one superuser, `boss`."""

    def __init__(self, folder, programs=None):
        self.folder = folder
        self.programs = programs or server.newest()
        folder.mkdir(exist_ok=True)
        self._enter = server_account(folder).enter(ends_with_parent=True)
        (folder / "password").write_text(PASSWORD)
        made = ["-D", folder / "pg", "-U", "boss", "--auth=scram-sha-256", "--no-sync", "-N"]
        made += [f"--pwfile={folder / 'password'}"]
        made = [self.programs.program("initdb"), *made]
        subprocess.run(made, check=True, capture_output=True, preexec_fn=self._enter)
        self.port = free_port()
        self.start()

    def start(self):
        """Starts it, and waits until it answers."""
        options = [word for name, value in _SET.items() for word in ("-c", f"{name}={value}")]
        command = [self.programs.program("postgres"), "-D", self.folder / "pg", "-p", str(self.port)]
        with (self.folder / "log").open("ab") as log:
            command += options
            self.process = subprocess.Popen(command, stdout=log, stderr=log, preexec_fn=self._enter)  # noqa: PLW1509 (one thread)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with suppress(psycopg.OperationalError):
                psycopg.connect(self.url(), connect_timeout=5).close()
                return
            time.sleep(0.02)
        raise TimeoutError("the server does not start")

    def url(self, name="postgres", user="boss", password=PASSWORD):
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{name}"

    def new_database(self):
        """The URL of a new database."""
        name = f"test_{os.urandom(4).hex()}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def rows(self, address, statement):
        with psycopg.connect(make_conninfo(address, options="-c search_path=tamias,public")) as connection:
            return connection.execute(statement).fetchall()

    def kill(self):
        """The server and its sessions are gone, as after a power cut of their machine."""
        self._signal(signal.SIGKILL)
        self.process.wait()
        # Its memory is left behind, and a child may take a moment to die: the next one looks for both.
        (self.folder / "pg" / "postmaster.pid").unlink(missing_ok=True)

    def freeze(self):
        """Connections stay open, and nothing comes from them any more."""
        self._signal(signal.SIGSTOP)

    def thaw(self):
        self._signal(signal.SIGCONT)

    def close(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _signal(self, number):
        """The server first: it starts no others then."""
        with suppress(ProcessLookupError):
            self.process.send_signal(number)
        for pid in _children(self.process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, number)


def _children(parent):
    found = Path(f"/proc/{parent}/task/{parent}/children")
    return [int(pid) for pid in found.read_text().split()] if found.exists() else []
