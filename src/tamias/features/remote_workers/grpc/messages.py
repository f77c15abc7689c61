"""The gRPC services by name. Their messages are made from `descriptors.binpb`, which the `.proto` files give:

`python -m grpc_tools.protoc -I. --descriptor_set_out=descriptors.binpb urlfrontier.proto health.proto
reflection.proto tamias.proto` in this folder.
"""

from importlib.resources import files
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

FRONTIER = "urlfrontier.URLFrontier"
WORKERS = "tamias.Workers"
HEALTH = "grpc.health.v1.Health"
REFLECTION = "grpc.reflection.v1.ServerReflection"
REFLECTION_ALPHA = "grpc.reflection.v1alpha.ServerReflection"
"""The same service under the name that older clients ask for."""

Message = Any
"""Classes made at run time: the type checker cannot see into them."""


def _described() -> list[Any]:
    described = (
        files("tamias").joinpath("features", "remote_workers", "grpc", "descriptors.binpb").read_bytes()
    )
    return list(descriptor_pb2.FileDescriptorSet.FromString(described).file)


FILES: dict[str, Any] = {each.name: each for each in _described()}
"""The descriptions by file name."""

# A pool of our own: a program that has the public packages loaded too must not meet two of a name.
_POOL = descriptor_pool.DescriptorPool()
for _file in FILES.values():
    _POOL.Add(_file)


def message(name: str) -> Message:
    """The class of a message, such as `urlfrontier.URLItem`."""
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(name))


def method_types(service: str) -> dict[str, tuple[Message, Message]]:
    """Request and answer of each call of a service."""
    methods = _POOL.FindServiceByName(service).methods
    return {
        each.name: (
            message_factory.GetMessageClass(each.input_type),
            message_factory.GetMessageClass(each.output_type),
        )
        for each in methods
    }


def file_of(symbol: str) -> Any:
    """The description of the file in which a service or message stands; KeyError where there is none."""
    return FILES[_POOL.FindFileContainingSymbol(symbol).name]
