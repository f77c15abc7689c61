"""Runs a program of PostgreSQL that ends by itself: initdb, pg_upgrade, the server for a single session."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from tamias.database.disk import is_full, no_room, tells_of_no_room
from tamias.database.embedded.account import ServerAccount
from tamias.database.embedded.server import SERVER_SECONDS, cluster_in_use, server_lock, tells_of_use
from tamias.database.locks import alone
from tamias.model.errors import DatabaseError


def run_program(
    command: Sequence[str],
    cluster: Path,
    account: ServerAccount,
    *descriptors: int,
    text: bytes = b"",
    environment: Mapping[str, str] | None = None,
) -> None:
    """Give it the text to read. It goes on to its end without us: what it reads and says is in memory."""
    with (
        _in_memory("text") as given,
        _in_memory("said") as words,
        alone(server_lock(cluster), SERVER_SECONDS) as lock,
    ):
        given.write(text)
        given.seek(0)
        done = subprocess.run(
            command,
            check=False,
            stdin=given,
            stdout=words,
            stderr=words,
            cwd=cluster,
            env={**os.environ, **(environment or {})},
            pass_fds=[lock.fileno(), *descriptors],
            preexec_fn=account.enter(),
        )
        words.seek(0)
        said = words.read().decode("utf-8", "replace")
    if done.returncode == 0:
        return
    if tells_of_no_room(said) or is_full(cluster.parent):
        raise no_room(cluster.parent)
    if tells_of_use(said):
        raise cluster_in_use(cluster)
    raise DatabaseError(f"{Path(command[0]).name} failed at {cluster.parent}: {_reason(said)}")


def _in_memory(name: str) -> IO[bytes]:
    return os.fdopen(os.memfd_create(name), "r+b", buffering=0)


def _reason(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    worst = [line for line in lines if "error" in line.lower() or "fatal" in line.lower()]
    return (worst or lines or ["it ended without a word"])[-1]
