"""Coverage: how much of a list of URLs a crawl has reached, by depth."""

from tamias.plugins import Feature, Verb

FEATURE = Feature(
    name="coverage",
    about="measures how much of a list of URLs was reached",
    module=__name__,
    verbs={
        "coverage": Verb(
            "show how much of a list of URLs was reached, by depth", "tamias.features.coverage.verb:command"
        )
    },
)
