"""A database cluster on disk: made, found, upgraded. Each major version has its own folder, `pg/18`.

A cluster appears under its name only when it is complete, so a crash or a full disk leaves nothing half-made.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tamias.database import binaries
from tamias.database.account import Account
from tamias.database.binaries import Binaries
from tamias.database.disk import no_room, tells_of_no_room
from tamias.database.locks import alone
from tamias.database.server import SERVER_SECONDS, Server, server_lock
from tamias.model.errors import DatabaseError, SchemaTooNew

SUPERUSER = "tamias"
_UNFINISHED = ".new"


def ready_cluster(folder: Path, account: Account, log: Path) -> tuple[Path, Binaries]:
    """The cluster of the newest version we have, made or upgraded if need be."""
    new = binaries.newest()
    account.must_reach(Path(new.program("postgres")))
    cluster = folder / str(new.major)
    found = max(clusters(folder), key=_major, default=None)
    if found is not None and _major(found) > new.major:
        raise SchemaTooNew(
            f"{found} was made by PostgreSQL {found.name}, and only {new.major} is installed here; "
            "install a newer Tamias, or set TAMIAS_PG_BIN to that version's programs"
        )
    if found != cluster:
        with _growing(cluster, account) as growing:
            _initdb(growing, new, account)
            if found is not None:
                _upgrade(found, growing, new, account, log)
    _remove_all_but(cluster)
    return cluster, new


def clusters(folder: Path) -> list[Path]:
    """The complete clusters in a folder, which need not be there."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return [path for path in folder.iterdir() if path.name.isdigit()]
    return []


def _major(cluster: Path) -> int:
    return int(cluster.name)


def _remove_all_but(cluster: Path) -> None:
    """What an upgrade was made from, and what was never finished."""
    for path in clusters(cluster.parent) + list(cluster.parent.glob(f"*{_UNFINISHED}")):
        if path != cluster:
            shutil.rmtree(path)


@contextmanager
def _growing(cluster: Path, account: Account) -> Iterator[Path]:
    """A folder to make the cluster in; it takes the cluster's name only if all went well."""
    growing = cluster.with_name(cluster.name + _UNFINISHED)
    # A killed keeper's initdb or pg_upgrade goes on to its end: not before that is its folder to be touched.
    with alone(server_lock(cluster), SERVER_SECONDS):
        shutil.rmtree(growing, ignore_errors=True)
    growing.mkdir(mode=0o700)
    try:
        account.own(growing)
        yield growing
        growing.rename(cluster)
        _sync(cluster.parent)
    except BaseException:
        shutil.rmtree(growing, ignore_errors=True)
        raise


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _initdb(cluster: Path, programs: Binaries, account: Account) -> None:
    words = ["--encoding=UTF8", "--locale=C", "--auth=trust", "--data-checksums", "--no-instructions"]
    _run([programs.program("initdb"), "-D", str(cluster), "-U", SUPERUSER, *words], cluster, account)


def _upgrade(old: Path, cluster: Path, new: Binaries, account: Account, log: Path) -> None:
    programs = binaries.of_major(_major(old))
    if programs is None:
        raise DatabaseError(
            f"{old} was made by PostgreSQL {old.name}, and its programs are needed once for the upgrade to "
            f"{new.major}; install PostgreSQL {old.name} beside it, then try again"
        )
    _end_cleanly(Server(old, programs, account, log))
    sockets = os.open(cluster.parent / "socket", os.O_PATH | os.O_DIRECTORY)
    try:
        words = ["-d", str(old), "-D", str(cluster), "-b", programs.folder, "-B", new.folder, "-U", SUPERUSER]
        # The descriptor's path is short, however long the folder's.
        short = ["-s", f"/proc/self/fd/{sockets}"]
        _run([new.program("pg_upgrade"), *words, *short], cluster, account, sockets)
    finally:
        os.close(sockets)
    (cluster / "delete_old_cluster.sh").unlink(missing_ok=True)


def _end_cleanly(server: Server) -> None:
    """An upgrade wants a cluster that was shut down in order, and this one may have seen a power cut."""
    server.start()
    server.stop()


def _run(command: list[str], cluster: Path, account: Account, *descriptors: int) -> None:
    """Runs a program that ends by itself, even without us: its words go to memory and cannot break."""
    told = os.memfd_create("told")
    with os.fdopen(told, "r+b") as words, alone(server_lock(cluster), SERVER_SECONDS) as lock:
        done = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=words,
            stderr=words,
            cwd=cluster,
            pass_fds=[lock.fileno(), *descriptors],
            preexec_fn=account.enter(),
        )
        words.seek(0)
        said = words.read().decode("utf-8", "replace")
    if done.returncode != 0:
        if tells_of_no_room(said):
            raise no_room(cluster.parent)
        raise DatabaseError(f"{Path(command[0]).name} failed at {cluster.parent}: {_reason(said)}")


def _reason(told: str) -> str:
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    worst = [line for line in lines if "error" in line.lower() or "fatal" in line.lower()]
    return (worst or lines or ["it ended without a word"])[-1]
