"""What must be known to go on with a copy after a break; small, whatever the endpoint's size."""

from typing import Literal

import msgspec

from tamias.doors.sparql.parts import Part

Form = Literal["json", "xml", "tsv", "construct"]
Union = Literal["", "said", "seen", "sampled"]
"""How it is known that the default graph is the union of the others; empty when it is not."""


class Manner(msgspec.Struct, omit_defaults=True):
    """How the endpoint is best talked to."""

    form: Form = "json"
    post: bool | None = None
    """None: where the query is long. True: always. False: never."""
    strikes: int = 0
    """How often a CONSTRUCT did not bring what it should; after some it is not tried any more."""


class State(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Changes with every page, and is kept together with it."""

    stage: Literal["new", "described", "surveyed"] = "new"
    manner: Manner = msgspec.field(default_factory=Manner)
    stack: list[Part] = []
    """The last is at work, within the one before it."""
    later: list[Part] = []
    """What comes when the stack is empty, the last first."""
    page: int = 10_000
    cap: int | None = None
    """The most rows the server gives in one answer, where it gives fewer than asked for."""
    most: int = 0
    """The most rows that one answer is known to have brought uncut."""
    counting: bool = True
    """Whether the endpoint counts."""
    labels: Literal["unknown", "stable", "unstable"] = "unknown"
    """Whether blank nodes have the same labels in every answer."""
    union: Union = ""
    union_said: bool = False
    graph_names: list[str] = []
    """As the service description gives them; needed where the endpoint cannot list them."""
    default_count: int | None = None
    statements: int = 0
    named: int = 0
    graphs: int = 0
    pages: int = 0
    requests: int = 0
    unreadable: int = 0
    abandoned: int = 0
    shuffled: bool = False
    """Pages by number did not join: the order changed between two requests."""
    relabelled: bool = False
    """Blank nodes of different pages could not be recognised as the same."""
    cut_short: str = ""
    """The limit of our own that was reached."""


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(State)


def packed(state: State) -> bytes:
    """The state as the steps carry it."""
    return _ENCODER.encode(state)


def unpacked(data: bytes | None, page: int) -> State:
    """The state that was packed; a new one where there is none, or where it is not ours."""
    if data is None:
        return State(page=page)
    try:
        return _DECODER.decode(data)
    except msgspec.MsgspecError:
        return State(page=page)
