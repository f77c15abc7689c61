"""Harvests: sources that take many requests, such as portals and endpoints, become one document each."""

from tamias.plugins import Feature

FEATURE = Feature(
    name="harvests",
    about="reads sources that take many requests, step by step",
    module=__name__,
    requires=("dcat",),
    stages={"harvest": f"{__name__}.stage:harvest_stage"},
)
