"""The connection of a worker to its service, against servers that behave in every way."""

import asyncio
import socket
from hashlib import sha256

import h2.config
import h2.connection
import h2.events
import h2.settings
import pytest

from tamias.features.remote_workers.grpc import channel as channel_module
from tamias.features.remote_workers.grpc.channel import (
    CallFailed,
    Channel,
    HungUp,
    NotReached,
    ReconnectingChannel,
    ServiceTarget,
)
from tamias.features.remote_workers.grpc.connection import Code, refusal
from tamias.model.errors import ConfigError, DatabaseUnavailable, DiskFull, TamiasError, UsageError
from tests.messages import saying

WINDOW, CALLS = 1 << 18, 3
SETTINGS = {
    h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: WINDOW,
    h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: CALLS,
}
OK = [(":status", "200"), ("content-type", "application/grpc")]
FINE = [("grpc-status", "0")]


def frame(message):
    return b"\0" + len(message).to_bytes(4, "big") + message


class Server(asyncio.Protocol):
    """An HTTP/2 server that answers the n-th call with the n-th of some behaviours."""

    def __init__(self, behaviours, at_once=None):
        """`at_once`: the behaviour that meets calls before their messages have come."""
        self._behaviours = behaviours
        self._at_once = at_once
        self._h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        self._h2.local_settings = h2.settings.Settings(client=False, initial_values=SETTINGS)
        self.received = {}
        self.resets = 0

    def connection_made(self, transport):
        self.transport = transport
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(1 << 24)
        self.flush()

    def data_received(self, data):
        for event in self._h2.receive_data(data):
            if isinstance(event, h2.events.DataReceived):
                self.received[event.stream_id] = self.received.get(event.stream_id, b"") + event.data
                self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.RequestReceived) and self._at_once:
                self._at_once(self, event.stream_id)
            elif isinstance(event, h2.events.StreamEnded):
                self._behaviours.pop(0)(self, event.stream_id)
            self.resets += isinstance(event, h2.events.StreamReset)
        self.flush()

    def answer(self, stream, headers, *messages, trailers=FINE):
        self._h2.send_headers(stream, headers)
        for message in messages:
            self._h2.send_data(stream, frame(message))
        self._h2.send_headers(stream, trailers, end_stream=True)

    def flush(self):
        data = self._h2.data_to_send()
        if data and not self.transport.is_closing():
            self.transport.write(data)

    @property
    def h2(self):
        return self._h2


def echo(server, stream):
    server.answer(stream, OK, server.received[stream][5:])


def digests(server, stream):
    server.answer(stream, OK, sha256(server.received[stream]).digest())


def says(*messages, headers=OK, trailers=FINE):
    return lambda server, stream: server.answer(stream, headers, *messages, trailers=trailers)


def resets(*, after=()):
    def behave(server, stream):
        if after:
            server.h2.send_headers(stream, [*OK, *after])
        server.h2.reset_stream(stream)

    return behave


def goes_away(server, _stream):
    server.h2.close_connection()


def talks_nonsense(server, _stream):
    server.transport.write(b"\0\0\1" + b"\0" * 6 + b"x")  # data of no stream


def hangs_up(server, _stream):
    server.transport.close()


def is_silent(_server, _stream):
    pass


def served(work, *behaviours, **words):
    """The result of `work(address)` beside such a server."""

    async def main():
        left = list(behaviours)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Server(left, **words), "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            return await work(f"127.0.0.1:{port}")

    return asyncio.run(main())


def on_channel(work, *behaviours, **words):
    """The result of `work(channel)`."""

    async def main(address):
        opened = await Channel.open(address, token="sesame", crawl="a crawl", tls=None)
        try:
            return await work(opened)
        finally:
            opened.close()

    return served(main, *behaviours, **words)


def called(*behaviours, messages=(b"hello",), **words):
    """What one call on one channel gives."""
    return on_channel(lambda channel: channel.call("/service/Call", messages), *behaviours, **words)


def test_all_answers_to_a_call_come_in_order():
    assert called(says(b"one", b"", b"three")) == [b"one", b"", b"three"]


def test_a_message_larger_than_the_window_of_the_server_arrives_whole():
    message = bytes(range(256)) * 2000
    digest = sha256(frame(message)).digest()
    assert called(digests, messages=[message]) == [digest]


@pytest.mark.parametrize(
    ("behaviour", "code", "sentence"),
    [
        (says(trailers=[("grpc-status", "5"), ("grpc-message", "no%20such thing")]), 5, "no such thing"),
        (says(trailers=[("grpc-status", "13")]), 13, "no reason given"),
        (says(headers=[(":status", "404")]), 14, "not a gRPC service"),
        (resets(after=[("grpc-status", "8"), ("grpc-message", "full")]), 8, "full"),
    ],
)
def test_what_the_service_refuses_has_its_status_and_reason(behaviour, code, sentence):
    with pytest.raises(CallFailed, match=sentence) as failed:
        called(behaviour)
    assert failed.value.code == code


@pytest.mark.parametrize("behaviour", [resets(), goes_away, talks_nonsense, hangs_up])
def test_a_connection_that_is_lost_ends_the_calls_under_way(behaviour):
    with pytest.raises(ConnectionError):
        called(behaviour)


def test_an_answer_without_an_end_is_not_taken(monkeypatch):
    monkeypatch.setattr(channel_module, "MOST_ANSWER", 1000)
    with pytest.raises(CallFailed, match="more than 1000 bytes"):
        called(says(b"x" * 2000))


def test_a_call_that_is_refused_before_it_was_sent_ends_at_once():
    def refuses(server, stream):
        server.answer(stream, OK, trailers=[("grpc-status", "8"), ("grpc-message", "too long")])

    with pytest.raises(CallFailed, match="too long"):
        called(messages=[bytes(10 * WINDOW)], at_once=refuses)


def test_a_call_behind_an_answer_that_was_too_long_is_answered(monkeypatch):
    monkeypatch.setattr(channel_module, "MOST_ANSWER", 1000)

    def begins(server, stream):
        server.h2.send_headers(stream, OK)
        server.h2.send_data(stream, frame(b"x" * 2000))

    def ends(server, stream):
        server.h2.send_data(1, frame(b"x" * 2000))
        server.h2.send_headers(1, FINE, end_stream=True)
        echo(server, stream)

    async def work(channel):
        with pytest.raises(CallFailed, match="more than 1000 bytes"):
            await channel.call("/s/C", [b"first"])
        return await channel.call("/s/C", [b"second"])

    assert on_channel(work, begins, ends) == [b"second"]


def test_more_calls_than_the_service_takes_at_once_wait_for_their_turn():
    async def work(channel):
        calls = (channel.call("/s/C", [str(number).encode()]) for number in range(10 * CALLS))
        return await asyncio.gather(*calls)

    answers = on_channel(work, *[echo] * 10 * CALLS)
    assert answers == [[str(number).encode()] for number in range(10 * CALLS)]


def test_a_call_that_waits_for_its_turn_ends_with_the_connection():
    async def work(channel):
        calls = [asyncio.create_task(channel.call("/s/C", [b""])) for _ in range(CALLS + 1)]
        await asyncio.sleep(0.1)
        assert not any(call.done() for call in calls)
        channel.close()
        return await asyncio.gather(*calls, return_exceptions=True)

    ends = on_channel(work, *[is_silent] * CALLS)
    assert [type(end) for end in ends] == [ConnectionError] * (CALLS + 1)


def test_a_message_reaches_a_service_that_does_not_read_for_a_while():
    def does_not_read(server, _stream):
        server.transport.pause_reading()
        asyncio.get_running_loop().call_later(0.3, server.transport.resume_reading)

    async def work(channel):
        channel._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        return await channel.call("/s/C", messages)

    messages = [bytes([number]) * WINDOW for number in range(4)]
    digest = sha256(b"".join(map(frame, messages))).digest()
    assert on_channel(work, digests, at_once=does_not_read) == [digest]


def test_a_connection_without_numbers_for_calls_is_replaced():
    async def work(channel):
        await channel.call("/s/C", [b"first"])
        channel._channel._h2.highest_outbound_stream_id = 2**31 - 1
        return await channel.call("/s/C", [b"second"])

    assert reconnecting(work, echo, echo) == [b"second"]


def test_a_call_that_is_given_up_as_its_answer_comes_leaves_the_connection_whole():
    async def work(channel):
        call = asyncio.create_task(channel.call("/s/C", [b"first"]))
        receive = channel.data_received

        def receive_too_late(data):
            call.cancel()
            receive(data)

        await asyncio.sleep(0)
        channel.data_received = receive_too_late
        with pytest.raises(asyncio.CancelledError):
            await call
        channel.data_received = receive
        return await channel.call("/s/C", [b"second"])

    assert on_channel(work, echo, echo) == [b"second"]


def test_a_channel_that_was_closed_takes_no_call():
    async def work(address):
        opened = await Channel.open(address, token=None, crawl=None, tls=None)
        opened.close()
        await opened.call("/service/Call", [b""])

    with pytest.raises(ConnectionError, match="lost"):
        served(work)


def test_a_call_that_is_given_up_is_reset_and_the_next_one_is_answered():
    async def work(address):
        opened = await Channel.open(address, token=None, crawl=None, tls=None)
        try:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(opened.call("/service/Call", [b"first"]), 0.2)
            return await opened.call("/service/Call", [b"second"])
        finally:
            opened.close()

    def tells_resets(server, stream):
        server.answer(stream, OK, str(server.resets).encode())

    assert served(work, is_silent, tells_resets) == [b"1"]


def packs(server, stream):
    server.h2.send_headers(stream, OK)
    server.h2.send_data(stream, b"\1\0\0\0\1x")
    server.h2.send_headers(stream, FINE, end_stream=True)


def test_an_answer_that_cannot_be_understood_is_a_failed_call():
    with pytest.raises(CallFailed, match="compressed") as failed:
        called(packs)
    assert failed.value.code == Code.UNIMPLEMENTED


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("no"), Code.INVALID_ARGUMENT),
        (DiskFull("no room"), Code.RESOURCE_EXHAUSTED),
        (DatabaseUnavailable("away"), Code.UNAVAILABLE),
        (TamiasError("a fault"), Code.INTERNAL),
    ],
)
def test_a_worker_is_told_by_the_status_whether_to_try_again(error, code):
    assert (refusal(error).code, refusal(error).sentence) == (code, str(error))


def reconnecting(work, *behaviours):
    async def main(address):
        connection = ReconnectingChannel(ServiceTarget(address=address))
        try:
            return await work(connection)
        finally:
            await connection.close()

    return served(main, *behaviours)


def test_a_call_is_tried_until_it_is_answered_and_the_outage_is_told_once(caplog):
    behaviours = (hangs_up, says(trailers=[("grpc-status", "14")]), goes_away, echo)
    assert reconnecting(lambda channel: channel.call("/s/C", [b"still"]), *behaviours) == [b"still"]
    told = [record.message for record in caplog.records]
    assert [("does not answer" in each, "answers again" in each) for each in told] == [
        (True, False),
        (False, True),
    ]


def test_a_service_that_is_silent_is_not_reached():
    with pytest.raises(NotReached, match="no answer within"):
        reconnecting(lambda channel: channel.try_once("/s/C", [b""], 0.2), is_silent)


def test_a_service_that_is_not_there_is_not_reached():
    async def work():
        await ReconnectingChannel(ServiceTarget(address="127.0.0.1:1")).try_once("/s/C", [], 5)

    with pytest.raises(NotReached):
        asyncio.run(work())


def test_what_is_refused_for_good_is_not_tried_again():
    with pytest.raises(CallFailed, match="no"):
        reconnecting(lambda channel: channel.call("/s/C", [b""]), says(trailers=[("grpc-status", "3")]))


def test_a_service_that_wants_another_token_is_a_matter_of_configuration():
    with pytest.raises(ConfigError, check=saying()):
        reconnecting(lambda channel: channel.call("/s/C", [b""]), says(trailers=[("grpc-status", "16")]))


@pytest.mark.parametrize("before", [True, False])
def test_who_is_told_to_end_waits_for_no_service(before):
    async def work(channel):
        if before:
            channel.hang_up()
        else:
            asyncio.get_running_loop().call_later(0.01, channel.hang_up)
        await channel.call("/s/C", [b""])

    with pytest.raises(HungUp):
        reconnecting(work, *[hangs_up] * 50)


def test_certificates_that_cannot_be_read_are_told(tmp_path):
    (tmp_path / "no.pem").write_text("nothing")
    with pytest.raises(ConfigError, check=saying()):
        ReconnectingChannel(ServiceTarget(address="a:1", tls=True, authority=str(tmp_path / "no.pem")))
