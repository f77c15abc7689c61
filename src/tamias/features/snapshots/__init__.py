"""Snapshots: the corpus as it was at a time, under a name, to be cited and exported again."""

from tamias.plugins import Feature, Verb

FEATURE = Feature(
    name="snapshots",
    about="freezes the corpus at a time, to cite it and export it again",
    module=__name__,
    requires=("service", "pages", "exports", "dcat"),
    tables=("snapshot",),
    verbs={
        "snapshot": Verb(
            "freeze the corpus at a time, to cite it and export it again",
            "tamias.features.snapshots.verb:command",
        )
    },
    pages={
        "snapshots": "tamias.features.snapshots.pages:snapshots",
        "snapshot": "tamias.features.snapshots.pages:snapshot",
    },
    bodies={"snapshot": "tamias.features.snapshots.rows:needed_bodies"},
    comparisons={"snapshot_graphs": "tamias.features.snapshots.make:snapshot_graphs"},
    endpoints={"snapshots": "tamias.features.snapshots.endpoints:ENDPOINTS"},
)
