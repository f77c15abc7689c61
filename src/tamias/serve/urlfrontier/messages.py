"""The services by name. Their messages are made from `descriptors.binpb`, which the `.proto` files give:

`python -m grpc_tools.protoc -I. --descriptor_set_out=descriptors.binpb urlfrontier.proto health.proto
reflection.proto tamias.proto` in this folder.
"""

from tamias.crawl.remote.messages import FILES, FRONTIER, WORKERS, Message, file_of, message, method_types

SERVICE = FRONTIER
HEALTH = "grpc.health.v1.Health"
REFLECTION = "grpc.reflection.v1.ServerReflection"
REFLECTION_ALPHA = "grpc.reflection.v1alpha.ServerReflection"
"""The same service under the name that older clients ask for."""

__all__ = [
    "FILES",
    "HEALTH",
    "REFLECTION",
    "REFLECTION_ALPHA",
    "SERVICE",
    "WORKERS",
    "Message",
    "file_of",
    "message",
    "method_types",
]
