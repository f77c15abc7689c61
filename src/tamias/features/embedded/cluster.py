"""A database cluster on disk: made, found, upgraded. Each major version has its own folder, `pg/18`.

A cluster appears under its name only when it is complete, so a crash or a full disk leaves nothing
half-made.

initdb and the migrations run once for a machine, and later clusters are copies of that one. It holds no
password and lets nobody in: `ready_login` in `server.py` sees to that in each copy.
"""

import ctypes
import hashlib
import io
import json
import os
import re
import secrets
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tamias.content.zstd import zstd
from tamias.database.disk import alone, private, sync_path, write_all
from tamias.database.embedded_server import OWNER, SUPERUSER, clusters
from tamias.database.migrate import feature_steps, migrations, newest_of_features, rights
from tamias.features.embedded import server
from tamias.features.embedded.server import (
    SERVER_SECONDS,
    Binaries,
    ServerAccount,
    make_owner,
    ready_login,
    run_as_superuser,
    run_program,
    run_single_session,
    server_lock,
)
from tamias.model.errors import DatabaseError, SchemaTooNew

_INITDB = ("--encoding=UTF8", "--locale=C", "--auth=reject", "--data-checksums", "--no-instructions")
_MOST_OTHERS = 3  # of the templates of other versions, the newest
_FIRST_OBJECT_ID = 16384
_PIECE_BYTES = 128 << 10
_BLANK_LINES = re.compile(r"\n\s*\n")
_libc = ctypes.CDLL(None, use_errno=True)


def make_cluster(cluster: Path, programs: Binaries, account: ServerAccount) -> None:
    """Fill an empty folder with a cluster that has the schema of this version.

    Some folders of programs have no more than the server and initdb; then the first session makes the schema.
    """
    if not os.access(programs.program("pg_resetwal"), os.X_OK):
        run_initdb(cluster, programs, account)
        return
    template = _template(programs)
    if template is not None and _unpack(template, cluster, account):
        return
    run_initdb(cluster, programs, account)
    _begin_object_ids(cluster, programs, account)
    make_owner(cluster, programs, account)
    _make_schema(cluster, programs, account)
    if template is not None:
        # Where it cannot be written, for want of room or rights, the next cluster is made as this one was.
        with suppress(OSError):
            _pack(cluster, template)


def run_initdb(cluster: Path, programs: Binaries, account: ServerAccount) -> None:
    """An empty cluster into which nobody may log in."""
    command = [programs.program("initdb"), "-D", str(cluster), "-U", SUPERUSER, *_INITDB]
    run_program(command, cluster, account)


def _begin_object_ids(cluster: Path, programs: Binaries, account: ServerAccount) -> None:
    """A single session would number our tables as the system's own, which pg_upgrade leaves out."""
    run_program(
        [programs.program("pg_resetwal"), "-o", str(_FIRST_OBJECT_ID), "-D", str(cluster)], cluster, account
    )


def _template(programs: Binaries) -> Path | None:
    """The file for these programs and this schema; none where the user has no folder for such things."""
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return None
    program = Path(programs.program("postgres")).stat()
    parts = [
        programs.folder,
        str(program.st_size),
        str(program.st_mtime_ns),
        *_INITDB,
        str(_FIRST_OBJECT_ID),
        _schema_script(),
    ]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    return folder / "tamias" / f"cluster-{programs.major}-{digest}.tar.zst"


def _schema_script() -> str:
    """Return all migrations and rights, without blank lines, which would end a statement here."""
    name, given = rights()
    texts = [*(step.text for step in (*migrations(), *feature_steps())), given.decode()]
    steps = [_BLANK_LINES.sub("\n", text).strip() for text in texts]
    # Without buckets until somebody chooses how many: see `migrate`.
    version, known = migrations()[-1].number, json.dumps(newest_of_features())
    ready = (
        f"UPDATE meta SET schema_version = {version}, buckets = 0, "  # noqa: S608
        f"rights = '{name}', features = '{known}';"
    )
    return f"SET ROLE {OWNER};\n\nBEGIN;\n\n" + "\n\n".join([*steps, ready]) + "\n\nCOMMIT;\n\n"


def _make_schema(cluster: Path, programs: Binaries, account: ServerAccount) -> None:
    words = {"search_path": "tamias,public", "client_min_messages": "warning"}
    run_single_session(cluster, programs, account, _schema_script().encode(), words)


def _unpack(template: Path, cluster: Path, account: ServerAccount) -> bool:
    """Return whether the folder now is a copy. If not it is as empty as before."""
    try:
        with open(template, "rb") as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                return False  # somebody else could have put anything into it
            # A buffer of its own: each call of the decompressor takes longer than a small file.
            with io.BufferedReader(zstd.open(file, "rb"), _PIECE_BYTES) as members:
                while _unpack_member(members, cluster):
                    pass
        account.own_all(cluster)
    except (OSError, EOFError, ValueError, zstd.ZstdError):
        for path in cluster.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return False
    with suppress(OSError):  # others may have removed it meanwhile
        os.utime(template)
    return True


def _unpack_member(members: io.BufferedIOBase, cluster: Path) -> bool:
    """Write the next folder or file; false at the end.

    Neither tarfile, which needs the whole in memory, nor file objects: either takes as long as the rest.
    """
    header = members.read(tarfile.BLOCKSIZE)
    if header == bytes(tarfile.BLOCKSIZE):
        return False
    name, size, kind = _text(header[:100]), _text(header[124:136]), header[156:157]
    if not name or ".." in name or name.startswith("/") or _text(header[345:500]):
        raise ValueError(name)
    path = f"{cluster}/{name}"
    if kind == tarfile.DIRTYPE:
        os.mkdir(path, 0o700)
        return True
    left = int(size, 8)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        padding = -left % tarfile.BLOCKSIZE
        while left:
            piece = members.read(min(left, _PIECE_BYTES))
            if not piece:
                raise EOFError(path)
            write_all(handle, piece)
            left -= len(piece)
        members.read(padding)
    finally:
        os.close(handle)
    return True


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("ascii")


def sync_file_system(folder: Path) -> None:
    """Sync the whole file system: syncing the thousand files one by one takes a second."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        if _libc.syncfs(handle) != 0:
            raise OSError(ctypes.get_errno(), "syncfs")
    finally:
        os.close(handle)


def _pack(cluster: Path, template: Path) -> None:
    template.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial = template.with_name(f"{template.name}.{os.getpid()}.partial")
    try:
        with (
            open(partial, "xb", opener=private) as file,
            zstd.open(file, "wb", level=3) as packed,
            tarfile.open(fileobj=packed, mode="w|", format=tarfile.USTAR_FORMAT) as members,
        ):
            for path in sorted(cluster.rglob("*")):
                members.add(path, str(path.relative_to(cluster)), recursive=False)
        partial.replace(template)
    finally:
        partial.unlink(missing_ok=True)
    _remove_old(template)


def _remove_old(template: Path) -> None:
    others = [path for path in template.parent.glob("cluster-*.tar.zst") if path != template]
    others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for path in others[_MOST_OTHERS:]:
        path.unlink(missing_ok=True)


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
