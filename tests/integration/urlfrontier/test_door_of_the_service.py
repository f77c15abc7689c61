"""Token, TLS, health and reflection, as the usual gRPC tools use them."""

import asyncio
import socket
import ssl
import subprocess
import threading
from contextlib import closing

import grpc
import pytest
from frontier_client import Client, Instance
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from tamias.access.audit import list_entries
from tamias.database.connect import Database
from tamias.features.remote_workers.grpc.channel import ReconnectingChannel, ServiceTarget
from tamias.features.remote_workers.store import FrontierClient
from tamias.features.tokens.tokens import NewToken, make_token, withdraw_token
from tests import commands


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("guarded")


@pytest.fixture(scope="module")
def guarded(folder):
    (folder / "token").write_text("open sesame\n", encoding="utf-8")
    make = (
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost"
    )
    alternative = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    try:
        subprocess.run([*make.split(), *alternative], cwd=folder, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    words = ["--tls-cert", "cert.pem", "--tls-key", "key.pem", "--token-file", "token"]
    files = [str(folder / word) if not word.startswith("--") else word for word in words]
    instance = Instance(folder / "data", *files)
    yield instance, grpc.ssl_channel_credentials((folder / "cert.pem").read_bytes())
    instance.stop()


def test_a_certificate_without_its_key_is_refused_with_the_option_to_add(guarded, folder):
    done = commands.run(
        ["frontier", "--data", folder / "other", "--tls-cert", folder / "cert.pem"],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, "--tls-key" in done.stderr) == (4, True), done.stderr


def test_with_certificate_and_token_calls_are_answered(guarded):
    instance, credentials = guarded
    with closing(Client(instance.address, token="open sesame", credentials=credentials)) as client:
        assert client.discover("http://a.example/", "http://b.example/") == [0, 0]
        assert len(client.get()) == 2


def test_a_worker_without_a_database_is_answered_by_tls_with_the_token(guarded, folder):
    async def settings():
        line = ReconnectingChannel(
            ServiceTarget(
                address=guarded[0].address, token="open sesame", tls=True, authority=str(folder / "cert.pem")
            )
        )
        try:
            return (await FrontierClient(line, 7).hello()).settings
        finally:
            await line.close()

    assert asyncio.run(settings()).fetch.contact


@pytest.fixture
def deaf(guarded, folder):
    """The address of a server that shakes hands, and reads and says nothing from then on."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    over = threading.Event()

    def serve():
        with listening.accept()[0] as connection, context.wrap_socket(connection, server_side=True):
            over.wait(20)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        over.set()
        thread.join()


def test_a_worker_leaves_no_socket_at_a_service_that_does_not_read(deaf, folder):
    target = ServiceTarget(address=deaf, tls=True, authority=str(folder / "cert.pem"))

    async def main():
        line = ReconnectingChannel(target)
        used = (await line._opened())._transport.get_extra_info("socket")
        await line.close()
        assert used.fileno() == -1

    asyncio.run(main())


@pytest.mark.parametrize("token", [None, "wrong"])
def test_without_the_token_no_call_is_answered(guarded, token):
    instance, credentials = guarded
    with closing(Client(instance.address, token=token, credentials=credentials)) as client:
        with pytest.raises(grpc.RpcError) as error:
            client.stats()
        assert error.value.code() == grpc.StatusCode.UNAUTHENTICATED


def test_named_tokens_open_the_calls_of_their_scopes(guarded, folder):
    instance, credentials = guarded
    with closing(Database(folder / "data")) as database, closing(database.session()) as session:
        tokens = {
            scope: make_token(session, NewToken(name=f"of-{scope}", scopes=[scope]), "test")
            for scope in ("read", "add", "crawl", "admin")
        }
        bound = make_token(session, NewToken(name="bound", scopes=["add"], bounds=["a.example"]), "test")
        calls = {
            "read": lambda client: client.stats(),
            "add": lambda client: client.discover("http://scoped.example/"),
            "crawl": lambda client: client.call("SetDelay", key="scoped.example", delay_requestable=1),
            "admin": lambda client: client.call("DeleteQueue", key="scoped.example"),
        }
        for scope, token in {**tokens, "bound": bound}.items():
            with closing(Client(instance.address, token=token, credentials=credentials)) as client:
                opened = {name for name, call in calls.items() if is_answered(call, client)}
            assert opened == (set(calls) if scope == "admin" else {scope} & set(calls))
        withdraw_token(session, "of-read", "test")
        with closing(Client(instance.address, token=tokens["read"], credentials=credentials)) as client:
            assert not is_answered(calls["read"], client, grpc.StatusCode.UNAUTHENTICATED)
        noted = [
            (each.who, each.what, each.targets, each.outcome.partition(" ")[0])
            for each in list_entries(session)
        ][::-1]
    changing = {"add": ("PutURLs", []), "crawl": ("SetDelay", ["scoped.example"])}
    changing["admin"] = ("DeleteQueue", ["scoped.example"])
    denied = [
        (who, f"gRPC {call}", [], "PERMISSION_DENIED")
        for who in ("of-read", "of-add", "of-crawl", "bound")
        for scope, (call, _) in changing.items()
        if who not in (f"of-{scope}", "of-admin")
    ]
    assert [each for each in noted if each[3] != "ok"] == denied
    assert [each for each in noted if each[3] == "ok"] == [
        ("of-crawl", "gRPC SetDelay", ["scoped.example"], "ok"),
        ("of-admin", "gRPC SetDelay", ["scoped.example"], "ok"),
        ("of-admin", "gRPC DeleteQueue", ["scoped.example"], "ok"),
    ]


def test_a_call_that_fails_is_in_the_log_too(guarded, folder):
    instance, credentials = guarded
    with (
        closing(Database(folder / "data")) as database,
        closing(database.session()) as session,
        closing(Client(instance.address, token="open sesame", credentials=credentials)) as client,
    ):
        session.transact(lambda cursor: cursor.execute("ALTER TABLE tamias.crawl RENAME TO crawl_away"))
        try:
            with pytest.raises(grpc.RpcError) as error:
                client.call("DeleteCrawl", value="some-crawl")
        finally:
            session.transact(lambda cursor: cursor.execute("ALTER TABLE tamias.crawl_away RENAME TO crawl"))
        [entry] = list_entries(session, limit=1)
    assert error.value.code() == grpc.StatusCode.INTERNAL
    assert (entry.what, entry.targets) == ("gRPC DeleteCrawl", ["some-crawl"])
    assert entry.outcome.startswith("INTERNAL ")


def is_answered(call, client, refusal=grpc.StatusCode.PERMISSION_DENIED):
    code = None
    try:
        call(client)
    except grpc.RpcError as error:
        code = error.code()
    assert code in (None, refusal)
    return code is None


def test_health_is_told_without_the_token(guarded):
    instance, credentials = guarded
    with grpc.secure_channel(instance.address, credentials) as channel:
        answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=10)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


def test_plain_text_is_not_answered_where_tls_is_wanted(guarded):
    with closing(Client(guarded[0].address)) as client, pytest.raises(grpc.RpcError):
        client.call("GetActive", timeout=3)


def test_health_of_an_unknown_service_is_not_found(instance):
    with grpc.insecure_channel(instance.address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        with pytest.raises(grpc.RpcError) as error:
            stub.Check(health_pb2.HealthCheckRequest(service="nonsense"), timeout=10)
    assert error.value.code() == grpc.StatusCode.NOT_FOUND


def test_health_can_be_watched(instance):
    with grpc.insecure_channel(instance.address) as channel:
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(), timeout=10)
        assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
        watch.cancel()


def test_reflection_tells_the_services_and_describes_ours(instance):
    asked = [
        reflection_pb2.ServerReflectionRequest(list_services=""),
        reflection_pb2.ServerReflectionRequest(file_containing_symbol="urlfrontier.URLFrontier"),
        reflection_pb2.ServerReflectionRequest(file_by_filename="nonsense.proto"),
    ]
    with grpc.insecure_channel(instance.address) as channel:
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        listed, described, refused = stub.ServerReflectionInfo(iter(asked), timeout=10)
    assert "urlfrontier.URLFrontier" in {each.name for each in listed.list_services_response.service}
    assert b"PutDiscovered" in described.file_descriptor_response.file_descriptor_proto[0]
    assert refused.error_response.error_code == 5


@pytest.mark.parametrize("content", [None, " \n"], ids=["no file", "empty file"])
def test_a_token_file_without_a_token_stops_the_start(tmp_path, content):
    if content is not None:
        (tmp_path / "token").write_text(content, encoding="utf-8")
    command = ["frontier", "--data", str(tmp_path), "--token-file"]
    told = commands.run([*command, str(tmp_path / "token")], capture_output=True, text=True, check=False)
    assert told.returncode == 4
    assert "token" in told.stderr
