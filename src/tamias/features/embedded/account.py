"""The account a PostgreSQL server runs under. It refuses to be root, so root lends it another face.

As root the server gets a user namespace in which root's own files belong to an ordinary account: nothing is
created, chowned or chmodded. Where namespaces are forbidden it becomes `postgres` or `nobody` for real.
"""

import ctypes
import os
import pwd
import signal
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tamias.model.errors import DatabaseError

_CLONE_NEWUSER = 0x10000000
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class ServerAccount(NamedTuple):
    """The account of the server's programs: our own, one in a namespace, or another user."""

    kind: str
    uid: int = 0
    gid: int = 0

    def own(self, folder: Path) -> None:
        """Give a folder of ours to the account, with all that is in it; never touches a parent."""
        if self.kind == "other" and folder.stat().st_uid != self.uid:
            self.own_all(folder)

    def own_all(self, folder: Path) -> None:
        """The same for a folder that was the account's already, and was filled by us."""
        if self.kind != "other":
            return
        for path in [*folder.rglob("*"), folder]:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def must_reach(self, path: Path) -> None:
        """Raise if the account cannot get at a path of ours, which happens only to another user."""
        if self.kind == "other" and not _succeeds(lambda: self._look_at(path)):
            raise DatabaseError(
                f"PostgreSQL refuses to run as root, and account {self.uid} instead cannot reach {path}: "
                "run tamias as an ordinary user, allow user namespaces, choose a --data that every account "
                "can reach, or name a server with --db"
            )

    def enter(self, *, ends_with_parent: bool = False) -> Callable[[], None]:
        """Return what the child must do between fork and exec."""
        parent = os.getpid()

        def in_child() -> None:
            self._become()
            if ends_with_parent:
                # A shell that starts us in the background has it ignored, and that is inherited.
                signal.signal(signal.SIGQUIT, signal.SIG_DFL)
                _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)
                # The parent died before the signal was arranged, so it will never come.
                if os.getppid() != parent:
                    os._exit(1)

        return in_child

    def _become(self) -> None:
        if self.kind == "namespace":
            _enter_namespace(self.uid)
        elif self.kind == "other":
            os.setgroups([])
            os.setgid(self.gid)
            os.setuid(self.uid)

    def _look_at(self, path: Path) -> None:
        self._become()
        if not os.access(path, os.R_OK | os.X_OK):
            raise PermissionError(path)


def server_account(folder: Path) -> ServerAccount:
    """The account for the server of a folder: the folder's owner, whatever face that one needs."""
    owner = folder.stat()
    if os.geteuid() != 0 and _has_name(os.geteuid()):
        return ServerAccount("self")
    if os.geteuid() == 0 and owner.st_uid != 0:
        return ServerAccount("other", owner.st_uid, owner.st_gid)
    if _succeeds(lambda: _enter_namespace(1)):
        return ServerAccount("namespace", _ordinary_user().pw_uid)
    return other_account() if os.geteuid() == 0 else ServerAccount("self")


def other_account() -> ServerAccount:
    """A real ordinary account, for root where namespaces are forbidden."""
    user = _ordinary_user()
    return ServerAccount("other", user.pw_uid, user.pw_gid)


def _ordinary_user() -> pwd.struct_passwd:
    """Return any account but root: the server only looks up its name."""
    accounts = {entry.pw_name: entry for entry in pwd.getpwall() if entry.pw_uid != 0}
    for name in ("postgres", "nobody", *accounts):
        if name in accounts:
            return accounts[name]
    raise DatabaseError(
        "PostgreSQL refuses to run as root and this machine has no other account; "
        "run tamias as an ordinary user, or name a server with --db"
    )


def _has_name(uid: int) -> bool:
    """Containers often run as a number without an account; the server's programs insist on a name."""
    return any(entry.pw_uid == uid for entry in pwd.getpwall())


def _enter_namespace(uid: int) -> None:
    outside = os.geteuid()
    if _libc.unshare(_CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "unshare(CLONE_NEWUSER)")
    Path("/proc/self/uid_map").write_text(f"{uid} {outside} 1", encoding="ascii")


def _succeeds(attempt: Callable[[], None]) -> bool:
    """Return whether it works in a child, which keeps the consequences."""
    child = os.fork()
    if child == 0:
        try:
            attempt()
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0
