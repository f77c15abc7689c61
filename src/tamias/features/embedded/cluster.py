"""A database cluster on disk: made, found, upgraded. Each major version has its own folder, `pg/18`.

A cluster appears under its name only when it is complete, so a crash or a full disk leaves nothing
half-made.
"""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tamias.database.disk import alone, sync_path
from tamias.database.embedded_server import SUPERUSER, clusters
from tamias.features.embedded import server
from tamias.features.embedded.account import ServerAccount
from tamias.features.embedded.login import ready_login, run_as_superuser
from tamias.features.embedded.server import SERVER_SECONDS, Binaries, run_program, server_lock
from tamias.features.embedded.template import make_cluster, run_initdb, sync_file_system
from tamias.model.errors import DatabaseError, SchemaTooNew

_UNFINISHED = ".new"


def ready_cluster(folder: Path, account: ServerAccount) -> tuple[Path, Binaries]:
    """The cluster of the newest version we have, made or upgraded if need be."""
    new = server.newest()
    account.must_reach(Path(new.program("postgres")))
    cluster = folder / str(new.major)
    found = max(clusters(folder), key=lambda each: int(each.name), default=None)
    if found is not None and int(found.name) > new.major:
        raise SchemaTooNew(
            f"{found} was made by PostgreSQL {found.name}, and only {new.major} is installed here; "
            "install a newer Tamias, or set TAMIAS_PG_BIN to that version's programs"
        )
    if found != cluster:
        with _growing(cluster, account) as growing:
            if found is None:
                make_cluster(growing, new, account)
                # Until it has its name, nobody misses what a power cut takes from it.
                ready_login(growing, new, account, sync=False)
                sync_file_system(growing)
            else:
                run_initdb(growing, new, account)
                _upgrade(found, growing, new, account)
                ready_login(growing, new, account)
    else:
        ready_login(cluster, new, account)
    _remove_all_but(cluster)
    return cluster, new


def _remove_all_but(cluster: Path) -> None:
    """Remove the clusters that were upgraded from and those that were never finished."""
    for path in clusters(cluster.parent) + list(cluster.parent.glob(f"[0-9]*{_UNFINISHED}")):
        if path != cluster:
            shutil.rmtree(path)


@contextmanager
def _growing(cluster: Path, account: ServerAccount) -> Iterator[Path]:
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
        sync_path(cluster.parent)
    except BaseException:
        shutil.rmtree(growing, ignore_errors=True)
        raise


def _upgrade(old: Path, cluster: Path, new: Binaries, account: ServerAccount) -> None:
    programs = server.of_major(int(old.name))
    if programs is None:
        raise DatabaseError(
            f"{old} was made by PostgreSQL {old.name}, and its programs are needed once for the upgrade to "
            f"{new.major}; install PostgreSQL {old.name} beside it, then try again"
        )
    password = secrets.token_hex()
    # This also shuts it down in order, as an upgrade wants it: it may have seen a power cut.
    run_as_superuser(old, programs, account, "open_superuser", password=password)
    run_as_superuser(cluster, new, account, "open_superuser", password=password)
    allowed = cluster / "upgrade_hba.conf"
    allowed.write_text(f"local all {SUPERUSER} scram-sha-256\n", encoding="ascii")
    # Seen from the cluster, where pg_upgrade is started: a path of any other kind would have to be quoted.
    servers = ["-o", f"-c hba_file={allowed.name}", "-O", f"-c hba_file={allowed.name}"]
    sockets = os.open(cluster.parent / "socket", os.O_PATH | os.O_DIRECTORY)
    try:
        words = ["-d", str(old), "-D", str(cluster), "-b", programs.folder, "-B", new.folder, "-U", SUPERUSER]
        # The descriptor's path is short, however long the folder's.
        short = ["-s", f"/proc/self/fd/{sockets}"]
        command = [new.program("pg_upgrade"), *words, *short, *servers]
        run_program(command, cluster, account, sockets, environment={"PGPASSWORD": password})
    finally:
        os.close(sockets)
    allowed.unlink()
    (cluster / "delete_old_cluster.sh").unlink(missing_ok=True)
