"""A client of the gRPC frontier: whatever it sends, its connection ends or goes on, and holds nothing."""

import asyncio

from tamias.features.urlfrontier.grpc.http2 import MAX_MESSAGE, MOST_HELD, Call, Connections, Http2Connection

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_TURNS = 50


class _Transport:
    """Takes what is written, and notes that it was closed."""

    def __init__(self) -> None:
        self.closing = False

    def get_extra_info(self, _name: str) -> tuple[str, int]:
        return "127.0.0.1", 1

    def write(self, _data: bytes) -> None:
        pass

    def close(self) -> None:
        self.closing = True

    def is_closing(self) -> bool:
        return self.closing

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


async def _echo(call: Call) -> None:
    async for messages in call.batches():
        assert all(len(each) <= MAX_MESSAGE for each in messages)
        await call.send(messages)


async def _feed(data: bytes) -> None:
    connections = Connections(10, 10)
    for start in (_PREFACE + data, data):
        connection, transport = Http2Connection(_echo, connections), _Transport()
        connection.connection_made(transport)
        connection.data_received(start)
        for _ in range(_TURNS):
            await asyncio.sleep(0)
            assert 0 <= connection.held <= MOST_HELD + len(start)
        tasks = connection.tasks()
        connection.connection_lost(None)
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)
        assert connection.held == 0
    assert list(connections) == []


def grpc_frames(data: bytes) -> None:
    """HTTP/2 frames with gRPC messages in them, or what calls itself so."""
    asyncio.run(_feed(data))
