"""Event streams (LDES) and TREE collections."""

from tamias.plugins import Feature

FEATURE = Feature(
    name="ldes",
    about="follows event streams (LDES) and TREE collections",
    module=__name__,
    requires=("harvests",),
    harvesters={"ldes": "tamias.features.ldes.harvester:LdesHarvester"},
)
