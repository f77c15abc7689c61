"""The state of a copy, to go on after a break; small, whatever the endpoint's size."""

from typing import Literal

import msgspec

from tamias.features.sparql_copy.client import EndpointDialect
from tamias.features.sparql_copy.queries import Span

Way = Literal["pages", "hashes", "ordered", "unordered"]
"""Windows in the server's own order, which must join; by ranges of a hash, for servers whose order changes;
windows in an order of ours; windows that nothing proves."""
Union = Literal["", "said", "seen", "sampled"]
"""How it is known that the default graph is the union of the others; empty when it is not. `sampled`: of what
only the default graph has, nothing is known."""


class CopyPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The graph that is being copied, and how far that has come."""

    graph: str | None = None
    """None: the default graph."""
    own: bool = False
    """Only what no named graph has, as the server tells it apart."""
    compared: bool = False
    """The same, told apart here: it is copied after the named graphs, and without what they have."""
    content: Literal["all", "blank", "ground"] = "all"
    expected: int | None = None
    """The endpoint's count of the whole graph."""
    copied: int = 0
    base: int = 0
    """What of it came before this content."""
    way: Way = "pages"
    offset: int = 0
    last: int = 0
    """The offset of the window before it."""
    digest: int = 0
    """Of the statements in that window."""
    span: Span = Span()


class CopyState(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Changes with every page, and is kept together with it."""

    stage: Literal["new", "described", "readable", "labelled", "counted", "surveyed"] = "new"
    """How far the survey came."""
    is_document: bool = False
    """Whether something stands at its own address: if it answers no query, it is a page and no endpoint."""
    dialect: EndpointDialect = msgspec.field(default_factory=EndpointDialect)
    triples: bool = True
    """Whether statements come by CONSTRUCT, in N-Triples; else as rows."""
    labels: Literal["none", "hold", "change"] = "none"
    """Whether a blank node has the same label in every response; `none`: there are no blank nodes."""
    triple_terms: bool = False
    """Whether queries may ask for triple terms; set where labels change."""
    order: Literal["unknown", "holds", "changes"] = "unknown"
    """Whether the windows of LIMIT and OFFSET join."""
    union: Union = ""
    union_said: bool = False
    counts: bool = True
    """Whether the endpoint counts."""
    default: CopyPart | None = None
    """The default graph, where it is still to be copied."""
    default_count: int | None = None
    graph_names: list[str] = []
    """As the service description gives them; needed where the endpoint cannot list them."""
    listing: Span | None = None
    """The graphs that are being copied, by the hashes of their names; None after the last."""
    done: str = ""
    """Of these, the graphs up to this one (in the order of code points) are copied."""
    part: CopyPart | None = None
    page: int = 10_000
    cap: int | None = None
    """The most rows the server gives in one response, where it gives fewer than requested."""
    most: int = 0
    """The most rows that one response is known to have brought uncut."""
    statements: int = 0
    promised: int = 0
    """By the endpoint's own counts of what was copied so far or is being copied."""
    renamed: int = msgspec.field(default=0, name="told_apart")
    """Statements of the default graph that no named graph has, where it is compared."""
    graphs: int = 0
    counted: int = 0
    """A digest of all graphs with their counts before the copy."""
    pages: int = 0
    unreadable: int = 0
    abandoned: int = 0
    miscounted: int = 0
    example: str = ""
    shuffled: bool = False
    relabelled: bool = False
    cut_short: str = ""
    """The limit of our own that was reached."""

    def learn_cap(self, rows: int) -> None:
        """The server gives no more than so many rows at once."""
        self.cap = rows
        self.most = min(self.most, rows)
        self.page = max(2, min(self.page, rows))


def unpacked(data: bytes | None, page: int) -> CopyState:
    """Return the state of a step; a new one where there is none, or where it is not ours."""
    try:
        return msgspec.msgpack.decode(data, type=CopyState) if data is not None else CopyState(page=page)
    except msgspec.MsgspecError:
        return CopyState(page=page)
