"""Name servers of our own: answers from a table that changes its mind where an attack wants it."""

import asyncio
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address
from typing import NamedTuple, cast

OK, SERVFAIL, NXDOMAIN = 0, 2, 3
_A, _IN = 1, 1
_HEAD = struct.Struct(">HHHHHH")
_RESPONSE = 0x8480
_TTL = 0
_MOST_QUESTION = 512

Turns = Sequence[Sequence[str]]
"""The addresses of a name, for the first question, the second and so on; the last stays."""


class DnsQuestion(NamedTuple):
    """What a client asks."""

    name: str
    """In lower case."""
    wants_address: bool
    """Of IPv4; other kinds of records are not there."""
    end: int
    """Where the question ends in the query."""


def parse_question(query: bytes) -> DnsQuestion | None:
    """The one question of a query (RFC 1035); None where that is not what it is.

    >>> parse_question(bytes(12) + bytes([3]) + b"One" + bytes([4]) + b"test" + bytes([0, 0, 1, 0, 1]))
    DnsQuestion(name='one.test', wants_address=True, end=26)
    """
    place, labels = _HEAD.size, []
    while place < len(query) and query[place]:
        labels.append(query[place + 1 : place + 1 + query[place]].decode("ascii", "replace").lower())
        place += 1 + query[place]
    if place + 5 > len(query):
        return None
    kind = int.from_bytes(query[place + 1 : place + 3], "big")
    return DnsQuestion(".".join(labels), kind == _A, place + 5)


def reply(query: bytes, question: DnsQuestion, code: int, addresses: Sequence[str] = ()) -> bytes:
    """What a name server says to it."""
    records = b"".join(
        struct.pack(">HHHIH", 0xC00C, _A, _IN, _TTL, 4) + IPv4Address(each).packed for each in addresses
    )
    head = _HEAD.pack(int.from_bytes(query[:2], "big"), _RESPONSE | code, 1, len(addresses), 0, 0)
    return head + query[_HEAD.size : question.end] + records


class DnsServer(asyncio.DatagramProtocol):
    """Speaks DNS on a datagram socket; `answer` says what."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        query = data[:_MOST_QUESTION]
        question = parse_question(query)
        answer = self.answer(question) if question else None
        if question and answer:
            self._transport.sendto(reply(query, question, *answer), addr)

    def answer(self, question: DnsQuestion) -> tuple[int, Sequence[str]] | None:
        """The code and the addresses; None says nothing."""
        raise NotImplementedError


class NameTable(DnsServer):
    """Answers from a table."""

    def __init__(self, table: Mapping[str, Turns]) -> None:
        self._table = table
        self.asked: Counter[str] = Counter()

    def answer(self, question: DnsQuestion) -> tuple[int, Sequence[str]]:
        turns = self._table.get(question.name)
        if turns is None or not question.wants_address:
            return (NXDOMAIN if turns is None else OK), ()
        self.asked[question.name] += 1
        return OK, turns[min(self.asked[question.name], len(turns)) - 1]
