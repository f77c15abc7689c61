"""Backup and restore: rows as of one moment, and at least the bytes that they name."""

from tamias.plugins import Feature, Verb

FEATURE = Feature(
    name="backup",
    about="snapshots of a live archive, to restore it",
    module=__name__,
    verbs={
        "backup": Verb("take a snapshot of a live archive", "tamias.features.backup.verbs:backup"),
        "restore": Verb("restore a snapshot", "tamias.features.backup.verbs:restore"),
    },
)
