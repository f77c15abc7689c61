"""Cluster: the frontier distributed over many servers, and data copied into another number of buckets."""

from tamias.plugins import Feature, Verb

FEATURE = Feature(
    name="cluster",
    about="distributes the frontier over a Citus cluster, and changes the number of buckets",
    module=__name__,
    verbs={
        "cluster": Verb("distribute the frontier over many servers", "tamias.features.cluster.verb:command")
    },
)
