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

import msgspec

from tamias.model.errors import DatabaseError

_CLONE_NEWUSER = 0x10000000
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class Account(msgspec.Struct, frozen=True):
    """How to start the server's programs: as we are, in a namespace, or as another user."""

    kind: str
    uid: int = 0
    gid: int = 0

    def own(self, folder: Path) -> None:
        """Makes a folder of ours usable by the account; never touches a parent."""
        if self.kind == "other":
            os.chown(folder, self.uid, self.gid)

    def enter(self, *, ends_with_parent: bool = False) -> Callable[[], None]:
        """What the child must do between fork and exec."""

        def in_child() -> None:
            if self.kind == "namespace":
                _enter_namespace(self.uid)
            elif self.kind == "other":
                os.setgroups([])
                os.setgid(self.gid)
                os.setuid(self.uid)
            if ends_with_parent:
                _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGINT)

        return in_child


def server_account() -> Account:
    """The account for servers started by this process."""
    if os.geteuid() != 0:
        return Account("self")
    if _namespaces_work():
        return Account("namespace", _ordinary_user().pw_uid)
    return other_account()


def other_account() -> Account:
    """A real ordinary account, for root where namespaces are forbidden."""
    user = _ordinary_user()
    return Account("other", user.pw_uid, user.pw_gid)


def _ordinary_user() -> pwd.struct_passwd:
    """Any account but root: the server only looks up its name."""
    accounts = {entry.pw_name: entry for entry in pwd.getpwall() if entry.pw_uid != 0}
    for name in ("postgres", "nobody", *accounts):
        if name in accounts:
            return accounts[name]
    raise DatabaseError(
        "PostgreSQL refuses to run as root and this machine has no other account; "
        "run tamias as an ordinary user, or name a server with --db"
    )


def _enter_namespace(uid: int) -> None:
    if _libc.unshare(_CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "unshare(CLONE_NEWUSER)")
    Path("/proc/self/uid_map").write_text(f"{uid} 0 1", encoding="ascii")


def _namespaces_work() -> bool:
    child = os.fork()
    if child == 0:
        try:
            _enter_namespace(1)
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0
