"""A database cluster on disk: made, found, upgraded. Each major version has its own folder, `pg/18`.

A cluster appears under its name only when it is complete, so a crash or a full disk leaves nothing half-made.
"""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tamias.database import binaries
from tamias.database.account import Account
from tamias.database.binaries import Binaries
from tamias.model.errors import DatabaseError, DiskFull, SchemaTooNew

SUPERUSER = "tamias"


def ready_cluster(folder: Path, sockets: Path, account: Account) -> tuple[Path, Binaries]:
    """The cluster of the newest version we have, made or upgraded if need be."""
    new = binaries.newest()
    cluster = folder / str(new.major)
    if not cluster.exists():
        old = _newest_existing(folder)
        if old is not None and int(old.name) > new.major:
            raise SchemaTooNew(
                f"{old} was made by PostgreSQL {old.name}, and only {new.major} is installed here; "
                "install a newer Tamias, or set TAMIAS_PG_BIN to that version's programs"
            )
        with _growing(cluster, account) as growing:
            _initdb(growing, new, account)
            if old is not None:
                _upgrade(old, growing, new, sockets, account)
        if old is not None:
            shutil.rmtree(old)
    return cluster, new


def _newest_existing(folder: Path) -> Path | None:
    clusters = [path for path in folder.iterdir() if path.name.isdigit()]
    return max(clusters, key=lambda path: int(path.name), default=None)


@contextmanager
def _growing(cluster: Path, account: Account) -> Iterator[Path]:
    """A folder to make the cluster in; it takes the cluster's name only if all went well."""
    growing = cluster.with_name(cluster.name + ".new")
    shutil.rmtree(growing, ignore_errors=True)
    growing.mkdir(mode=0o700)
    account.own(growing)
    try:
        yield growing
    except BaseException:
        shutil.rmtree(growing, ignore_errors=True)
        raise
    growing.rename(cluster)


def _initdb(cluster: Path, programs: Binaries, account: Account) -> None:
    words = ["--encoding=UTF8", "--locale=C", "--auth=trust", "--data-checksums", "--no-instructions"]
    _run([programs.program("initdb"), "-D", str(cluster), "-U", SUPERUSER, *words], account, cluster)


def _upgrade(old: Path, cluster: Path, new: Binaries, sockets: Path, account: Account) -> None:
    programs = binaries.of_major(int(old.name))
    if programs is None:
        raise DatabaseError(
            f"{old} was made by PostgreSQL {old.name}, and its programs are needed once for the upgrade to "
            f"{new.major}; install PostgreSQL {old.name} beside it, then try again"
        )
    places = ["-d", str(old), "-D", str(cluster), "-b", programs.folder, "-B", new.folder, "-s", str(sockets)]
    _run([new.program("pg_upgrade"), *places, "-U", SUPERUSER], account, cluster)


def _run(command: list[str], account: Account, cluster: Path) -> None:
    result = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        errors="replace",
        cwd=cluster,
        timeout=3600,
        preexec_fn=account.enter(),
    )
    if result.returncode != 0:
        told = (result.stderr + result.stdout).strip()
        if "No space left on device" in told:
            raise DiskFull(f"no room for the database at {cluster.parent}; free some space and try again")
        raise DatabaseError(f"{Path(command[0]).name} failed at {cluster.parent}: {_last_line(told)}")


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if "error" in line.lower() or "fatal" in line.lower()]
    return (lines or text.splitlines() or ["no message"])[-1]
