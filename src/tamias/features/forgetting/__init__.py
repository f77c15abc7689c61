"""Forgetting: bytes of what has a tombstone are removed everywhere, and a search proves it."""

from tamias.plugins import Feature, Verb

FEATURE = Feature(
    name="forgetting",
    about="removes forgotten resources and versions, byte by byte, and applies retention rules",
    module=__name__,
    requires=("warc", "repack"),
    verbs={
        "forget": Verb(
            "remove resources or versions for good; a tombstone stays",
            "tamias.features.forgetting.verb:command",
        )
    },
    tasks={"retention": "tamias.features.forgetting.retention:apply_rules_often"},
    check={"forgotten": "tamias.features.forgetting.leftovers:find_leftovers"},
    repairs={"forgetting": "tamias.features.forgetting.forgetter:finish_forgetting"},
)
