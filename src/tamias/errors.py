"""The errors that a user of the library can meet: each is a `TamiasError` and one sentence to read.

`retry_can_help` says whether trying again may, and `exit_code` what the command ends with.
"""

from tamias.archive.blobs import BlobDamaged
from tamias.archive.reader.content import NoTable
from tamias.archive.reader.library import NotArchived
from tamias.model.errors import (
    ConfigError,
    DatabaseError,
    DatabaseUnavailable,
    DataInUse,
    DataMissing,
    DiskFull,
    SchemaTooNew,
    SchemaTooOld,
    TamiasError,
    UrlError,
    UsageError,
)

__all__ = [
    "BlobDamaged", "ConfigError", "DataInUse", "DataMissing", "DatabaseError", "DatabaseUnavailable",
    "DiskFull", "NoTable", "NotArchived", "SchemaTooNew", "SchemaTooOld", "TamiasError", "UrlError",
    "UsageError",
]  # fmt: skip
