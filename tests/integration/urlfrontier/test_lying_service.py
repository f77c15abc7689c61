"""A frontier service that lies: its far workers request nothing in their own network."""

from concurrent.futures import ThreadPoolExecutor

import grpc
import msgspec
import pytest

from tamias.features.remote_workers import wire
from tamias.features.remote_workers.grpc.connection import message
from tamias.settings import Settings

PACKED, INFO = message("tamias.Packed"), message("urlfrontier.URLInfo")


class LyingService(grpc.GenericRpcHandler):
    """Greets workers with settings of its own and lends nothing."""

    def __init__(self, settings):
        self.policy = wire.WirePolicy(settings, (), (), "digest", 0)
        self.calls = []
        self.server = grpc.server(ThreadPoolExecutor(4))
        self.server.add_generic_rpc_handlers((self,))
        self.address = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()

    def service(self, details):
        name = details.method.rpartition("/")[2]
        if name == "GetURLs":
            return grpc.unary_stream_rpc_method_handler(lambda *_: self.lend(), None, None)
        return grpc.unary_unary_rpc_method_handler(lambda *_: self.answer(name), None, None)

    def lend(self):
        self.calls.append("GetURLs")
        return iter(())

    def answer(self, name):
        self.calls.append(name)
        value = self.policy if name == "Hello" else None
        return PACKED(value=wire.packed(value)).SerializeToString()


@pytest.fixture
def serve():
    services = []

    def start(**tables):
        settings = Settings()
        changed = {
            name: msgspec.structs.replace(getattr(settings, name), **values)
            for name, values in tables.items()
        }
        services.append(LyingService(msgspec.structs.replace(settings, **changed)))
        return services[-1]

    yield start
    for service in services:
        service.server.stop(None)


def test_the_block_lists_of_a_service_are_not_requested_by_its_workers(tamias, serve, site, tmp_path):
    site.pages["/list"] = b"a.example\n"
    service = serve(filters={"blocklists": (site.url("/list"), "/etc/hostname")})
    worker = tamias.start(
        "worker", "--frontier", service.address, "--workers", "1", "--scratch", str(tmp_path / "scratch")
    )
    tamias.wait_until(lambda: "GetURLs" in service.calls or worker.poll() is not None)
    assert worker.poll() is None, worker.stderr.read()
    assert site.log == []
