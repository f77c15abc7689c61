"""Errors that a user can meet.

    TamiasError                  exit 1
    ├── UsageError               exit 2    what was typed makes no sense
    ├── UrlError                 exit 2    an address that is not a URL
    ├── ConfigError              exit 4    a setting that does not exist or does not fit
    ├── LimitReached             exit 5    stopped by a limit the user set
    ├── DataMissing              exit 10   no such data directory
    ├── DataInUse                exit 11   data directory in use and not to be shared
    ├── DiskFull                 exit 12
    └── DatabaseError            exit 1
        ├── DatabaseUnavailable            trying again can help
        │   └── NodeAway                   one node of a cluster; the others can be asked
        ├── SchemaTooNew         exit 4    made by a newer Tamias
        └── SchemaTooOld         exit 4    made by a Tamias too old to upgrade from

An error is one sentence: what happened, to what, and what to do.
"""

from typing import ClassVar


class TamiasError(Exception):
    """A failure that the user should read about."""

    exit_code: ClassVar[int] = 1
    retry_can_help: ClassVar[bool] = False


class UsageError(TamiasError):
    """The user's input makes no sense."""

    exit_code = 2


class UrlError(TamiasError, ValueError):
    """An address that is not a URL, or of a kind that cannot be fetched."""

    exit_code = 2


class ConfigError(TamiasError):
    """A setting that does not exist, or a value that does not fit it."""

    exit_code = 4


class LimitReached(TamiasError):
    """The work was stopped by a limit the user set."""

    exit_code = 5


class DataMissing(TamiasError):
    """The named data directory does not exist."""

    exit_code = 10


class DataInUse(TamiasError):
    """The data directory is held by a process that cannot share it."""

    exit_code = 11


class DiskFull(TamiasError):
    """The disk is full."""

    exit_code = 12


class DatabaseError(TamiasError):
    """The database refused, or could not be started."""


class DatabaseUnavailable(DatabaseError):
    """The database cannot be reached at this moment."""

    retry_can_help = True


class NodeAway(DatabaseUnavailable):
    """A node of a cluster cannot be reached at this moment; data on the others can be."""


class SchemaTooNew(DatabaseError):
    """The data was written by a newer version of Tamias."""

    exit_code = 4


class SchemaTooOld(DatabaseError):
    """The data was written by a version of Tamias that this one cannot upgrade from."""

    exit_code = 4
