"""A name server of our own: answers from a table, and changes its mind where an attack wants it."""

import asyncio
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address
from typing import cast

_HEAD = struct.Struct(">HHHHHH")
_A = 1
_IN = 1
_ANSWER = 0x8480
_NO_SUCH_NAME = 0x8483
_TTL = 0
_MOST_QUESTION = 512

Turns = Sequence[Sequence[str]]
"""The addresses of a name, for the first question, the second and so on; the last stays."""


class Names(asyncio.DatagramProtocol):
    """Speaks DNS on a datagram socket, as far as it takes."""

    def __init__(self, table: Mapping[str, Turns]) -> None:
        self._table = table
        self.asked: Counter[str] = Counter()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        question = data[:_MOST_QUESTION]
        name, end = question_name(question)
        if name is None:
            return
        kind = int.from_bytes(question[end : end + 2], "big")
        self._transport.sendto(self._answer(question, name, end + 4, kind), addr)

    def _answer(self, question: bytes, name: str, end: int, kind: int) -> bytes:
        number = question[:2]
        turns = self._table.get(name)
        if turns is None:
            return number + _HEAD.pack(0, _NO_SUCH_NAME, 1, 0, 0, 0)[2:] + question[12:end]
        found = list(self._turn(name, turns)) if kind == _A else []
        records = b"".join(
            struct.pack(">HHHIH", 0xC00C, _A, _IN, _TTL, 4) + IPv4Address(each).packed for each in found
        )
        return number + _HEAD.pack(0, _ANSWER, 1, len(found), 0, 0)[2:] + question[12:end] + records

    def _turn(self, name: str, turns: Turns) -> Sequence[str]:
        turn = turns[min(self.asked[name], len(turns) - 1)]
        self.asked[name] += 1
        return turn


def question_name(question: bytes) -> tuple[str | None, int]:
    """The name that is asked for, in lower case, and where it ends.

    >>> question_name(b"12" + bytes(10) + bytes([3]) + b"One" + bytes([4]) + b"test" + bytes(5))
    ('one.test', 22)
    """
    place, labels = _HEAD.size, []
    while place < len(question) and question[place]:
        length = question[place]
        labels.append(question[place + 1 : place + 1 + length].decode("ascii", "replace").lower())
        place += 1 + length
    return (".".join(labels) if place < len(question) else None), place + 1
