"""The descriptors are those of the `.proto` files, and the API's names and numbers are the public ones."""

from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2

import tamias.features.remote_workers.grpc as package
from tamias.features.remote_workers.grpc.connection import FRONTIER, message, method_types

FOLDER = Path(package.__file__).parent
# Written down from the public API, version 2.6: name, number.
FIELDS = {
    "Active": {"state": 1, "local": 2},
    "DeleteCrawlMessage": {"value": 1, "local": 2},
    "Pagination": {"start": 1, "size": 2, "include_inactive": 3, "crawlID": 4, "local": 5},
    "QueueList": {"values": 1, "total": 2, "start": 3, "size": 4, "crawlID": 5},
    "QueueWithinCrawlParams": {"key": 1, "crawlID": 2, "local": 3},
    "QueueDelayParams": {"key": 1, "delay_requestable": 2, "crawlID": 3, "local": 4, "delay_ms": 1000},
    "BlockQueueParams": {"key": 1, "time": 2, "crawlID": 3, "local": 4},
    "GetParams": {
        "max_urls_per_queue": 1,
        "max_queues": 2,
        "key": 3,
        "delay_requestable": 4,
        "anyCrawlID": 5,
        "crawlID": 6,
        "worker": 1010,
        "policy": 1011,
    },
    "URLInfo": {"url": 1, "key": 2, "metadata": 3, "crawlID": 4, "lent": 1010},
    "KnownURLItem": {"info": 1, "refetchable_from_date": 2},
    "URLItem": {"discovered": 1, "known": 2, "ID": 3, "creation_date": 4},
    "AckMessage": {"ID": 1, "status": 2},
    "DiscoveredBatch": {"ID": 1, "items": 2},
    "BatchAck": {"ID": 1, "statuses": 2},
    "Stats": {"size": 1, "inProcess": 2, "counts": 3, "numberOfQueues": 4, "crawlID": 5},
    "LogLevelParams": {"package": 1, "level": 2, "local": 3},
    "CrawlLimitParams": {"key": 1, "limit": 2, "crawlID": 3, "local": 4},
    "URLStatusRequest": {"url": 1, "key": 2, "crawlID": 3},
    "ListUrlParams": {
        "start": 1,
        "size": 2,
        "key": 3,
        "crawlID": 4,
        "local": 5,
        "filter": 6,
        "ignoreCase": 7,
    },
    "CountUrlParams": {"key": 1, "crawlID": 2, "filter": 3, "ignoreCase": 4, "local": 5},
    "PurgeUrlParams": {"key": 1, "crawlID": 2, "days": 3},
}


def test_the_descriptors_are_made_from_the_files(tmp_path):
    protoc = pytest.importorskip("grpc_tools.protoc")
    made = tmp_path / "made.binpb"
    names = ["urlfrontier.proto", "health.proto", "reflection.proto", "tamias.proto"]
    assert protoc.main(["protoc", f"-I{FOLDER}", f"--descriptor_set_out={made}", *names]) == 0
    kept = descriptor_pb2.FileDescriptorSet.FromString((FOLDER / "descriptors.binpb").read_bytes())
    assert descriptor_pb2.FileDescriptorSet.FromString(made.read_bytes()) == kept


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_fields_have_the_public_numbers(name):
    described = message(f"urlfrontier.{name}").DESCRIPTOR
    assert {field.name: field.number for field in described.fields} == FIELDS[name]


def test_there_are_nineteen_calls():
    assert len(method_types(FRONTIER)) == 19
