"""Harvests: sources that take many requests, such as portals and endpoints, become one document each."""

from tamias.plugins import Feature, Verb

FEATURE = Feature(
    name="harvests",
    about="reads sources that take many requests, step by step, and steers them",
    module=__name__,
    requires=("dcat",),
    tables=("harvest_job",),
    schema="schema.sql",
    verbs={"portals": Verb("list, harvest, stop and remove portals", f"{__name__}.verb:command")},
    stages={"harvest": f"{__name__}.stage:harvest_stage"},
)
