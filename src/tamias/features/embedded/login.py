"""Logins to an embedded cluster: its owner, an ordinary role, by a password. The superuser cannot.

What needs a superuser is done before the server starts, in a single session without a socket. It can be cut
off at any moment and is then done again, for the file that says who may log in is written last.
"""

import base64
import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from tamias.database.disk import private, sync_path
from tamias.database.embedded_server import DATABASE, LOGIN_FILE, OWNER
from tamias.database.sql import statements
from tamias.features.embedded.server import (
    Binaries,
    ServerAccount,
    forget_stale_note,
    run_program,
    server_settings,
)

_SQL = statements("tamias.features.embedded", "login.sql")
_STEPS = ("make_roles", "limit_owner", "give_database", "give_contents", "close_superuser")
_PASSWORD_BYTES = 32
_SALT_BYTES = 16
_SINGLE_BUFFERS = "16MB"  # a server's are made and given back for nothing, which is half of a session
_ITERATIONS = 1  # they make guessing slow, and a random key of 256 bits is not guessed


def ready_login(cluster: Path, programs: Binaries, account: ServerAccount, *, sync: bool = True) -> None:
    """Set up the login in new and upgraded clusters, and in those where it is not as it should be.

    Without `sync`, the caller brings the cluster to disk.
    """
    password = _read_password(cluster.parent)
    hosts = cluster / "pg_hba.conf"
    if password is not None and _read(hosts) == _allowed(password):
        return
    if password is None:
        password = secrets.token_hex(_PASSWORD_BYTES)
        _write(cluster.parent / LOGIN_FILE, f"*:*:*:{OWNER}:{password}\n")
    run_as_superuser(cluster, programs, account, *_STEPS, password=password, sync=sync)
    _write(hosts, _allowed(password))


def make_owner(cluster: Path, programs: Binaries, account: ServerAccount) -> None:
    """Roles and ownership for a cluster that will be copied; without a password nobody can log in."""
    run_as_superuser(
        cluster, programs, account, "make_roles", "give_database", "close_superuser", password=""
    )


def run_as_superuser(
    cluster: Path, programs: Binaries, account: ServerAccount, *steps: str, password: str, sync: bool = True
) -> None:
    """Run statements of `login.sql`, all or none."""
    verifier = _scram_verifier(password).encode()
    script = [b"BEGIN", *(_SQL[step].text.replace(b":verifier", verifier) for step in steps), b"COMMIT"]
    settings = {} if sync else {"fsync": "off"}
    run_single_session(cluster, programs, account, b"".join(each + b";\n\n" for each in script), settings)


def run_single_session(
    cluster: Path,
    programs: Binaries,
    account: ServerAccount,
    script: bytes,
    settings: Mapping[str, str] | None = None,
) -> None:
    """Run SQL without a socket, and leaves a cluster that was shut down in order.

    A semicolon before a blank line ends a statement.
    """
    forget_stale_note(cluster)
    own_settings = {"shared_buffers": _SINGLE_BUFFERS, "exit_on_error": "on", "log_checkpoints": "off"}
    all_settings = {**server_settings(), **own_settings, **(settings or {})}
    words = [word for name, value in all_settings.items() for word in ("-c", f"{name}={value}")]
    command = [programs.program("postgres"), "--single", "-j", "-D", str(cluster), *words, DATABASE]
    run_program(command, cluster, account, text=script)


def _allowed(password: str) -> str:
    """Return the file of allowed logins; its digest changes with the password and the setup."""
    digest = hashlib.sha256(password.encode())
    for step in _STEPS:
        digest.update(_SQL[step].text)
    return (
        f"# Written by Tamias, and again when it was changed. {digest.hexdigest()[:32]}\n"
        f"local {DATABASE} {OWNER} scram-sha-256\n"
    )


def _read_password(folder: Path) -> str | None:
    password = _read(folder / LOGIN_FILE).strip().rpartition(":")[2]
    return password if len(password) == 2 * _PASSWORD_BYTES else None


def _read(path: Path) -> str:
    try:
        path.chmod(0o600)  # libpq passes over a file that others can read
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def _write(path: Path, text: str) -> None:
    """Replaces a file at once, as one that belongs to the folder's owner and is read by nobody else."""
    partial = path.with_name(path.name + ".partial")
    partial.unlink(missing_ok=True)
    with open(partial, "x", encoding="ascii", opener=private) as file:
        owner = path.parent.stat()
        if os.geteuid() == 0:
            os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    sync_path(path.parent)


def _scram_verifier(password: str) -> str:
    """Return the verifier that the server stores instead of a password (RFC 5803)."""
    salt = secrets.token_bytes(_SALT_BYTES)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, _ITERATIONS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    served = hmac.digest(salted, b"Server Key", "sha256")
    salt64, stored64, served64 = (base64.b64encode(each).decode() for each in (salt, stored, served))
    return f"SCRAM-SHA-256${_ITERATIONS}:{salt64}${stored64}:{served64}"
