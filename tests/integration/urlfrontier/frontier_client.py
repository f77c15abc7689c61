"""A real gRPC client of the service, made of grpcio and the messages of our own description."""

import json
import os
import queue
import signal
import subprocess

import grpc

from tamias.features.remote_workers.grpc.connection import FRONTIER, message, method_types
from tests import commands

STREAMS = {"PutURLs": "stream_stream", "PutDiscovered": "stream_stream", "GetURLs": "unary_stream"} | {
    "ListURLs": "unary_stream"
}


def make(name, **words):
    return message(f"urlfrontier.{name}")(**words)


class Client:
    """Calls by name; server streams come as lists."""

    def __init__(self, address, token=None, credentials=None, options=None):
        self.channel = (
            grpc.secure_channel(address, credentials, options)
            if credentials
            else grpc.insecure_channel(address, options)
        )
        self.metadata = [("authorization", f"Bearer {token}")] if token else []
        self.types = method_types(FRONTIER)

    def call(self, name, *requests, timeout=20, **words):
        asked, answered = self.types[name]
        kind = STREAMS.get(name, "unary_unary")
        stub = getattr(self.channel, kind)(
            f"/{FRONTIER}/{name}", asked.SerializeToString, answered.FromString
        )
        request = iter(requests) if kind == "stream_stream" else (requests[0] if requests else asked(**words))
        answer = stub(request, timeout=timeout, metadata=self.metadata)
        return answer if kind == "unary_unary" else list(answer)

    def put(self, *items):
        return [(ack.ID, ack.status) for ack in self.call("PutURLs", *items)]

    def discover(self, *urls, key="", crawl=""):
        return [status for _, status in self.put(*(discovered(url, key, crawl) for url in urls))]

    def get(self, urls=0, queues=0, hold=0, **words):
        asked = {"max_urls_per_queue": urls, "max_queues": queues, "delay_requestable": hold, **words}
        return [info.url for info in self.call("GetURLs", **asked)]

    def stats(self, key="", crawl=""):
        return self.call("GetStats", key=key, crawlID=crawl)

    def close(self):
        self.channel.close()


def info(url, key="", crawl="", **metadata):
    made = make("URLInfo", url=url, key=key, crawlID=crawl)
    for name, values in metadata.items():
        made.metadata[name].values.extend(values)
    return made


def discovered(url, key="", crawl="", name="", **metadata):
    item = make("URLItem", ID=name)
    item.discovered.info.CopyFrom(info(url, key, crawl, **metadata))
    return item


def known(url, date, key="", crawl="", name="", **metadata):
    item = make("URLItem", ID=name)
    item.known.info.CopyFrom(info(url, key, crawl, **metadata))
    item.known.refetchable_from_date = date
    return item


class Stream:
    """A call of PutURLs: each item is sent when the one before is answered."""

    def __init__(self, client):
        self._items = queue.Queue()
        asked, answered = client.types["PutURLs"]
        stub = client.channel.stream_stream(
            f"/{FRONTIER}/PutURLs", asked.SerializeToString, answered.FromString
        )
        self._answers = stub(iter(self._items.get, None), timeout=60)

    def send(self, url, **metadata):
        self._items.put(discovered(url, **metadata))

    def answer(self):
        return next(self._answers).status

    def put(self, url, **metadata):
        self.send(url, **metadata)
        return self.answer()

    def close(self):
        self._items.put(None)
        assert list(self._answers) == []


class Instance:
    """A `tamias frontier` process of its own."""

    def __init__(self, data, *options, port=0, env=None):
        words = ["frontier", "--data", str(data), "--port", str(port)]
        self.process = commands.start(
            [*words, "--json", *options], stdout=subprocess.PIPE, text=True, env={**os.environ, **(env or {})}
        )
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the service did not start")
        self.address = json.loads(line)["address"]
        self.port = int(self.address.rpartition(":")[2])

    def kill(self):
        self.process.kill()
        self._reap()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self._reap()

    def _reap(self):
        self.process.wait(30)
        self.process.stdout.close()
