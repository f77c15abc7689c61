"""When a site is left alone because it has no end: its budget is used up, or its pages all say the same.

A host has a budget of visits, which is counted with the host for all workers. It grows with what is new:
words that none of its documents had, statements, links from other hosts. Numbers and the host's own addresses
are what a program invents without end: they earn nothing.

What a URL looks like is judged before it is known (`filters/trap.py`); this is about what came of visits.
"""

import re
from collections import OrderedDict

import msgspec

NEW_SHARE = 0.1
"""A template goes on as long as this share of its pages says something new."""
MOST_EARNED = 10
"""Visits that the new words of one document can earn."""
EARNED_BY_TEXT = 0.9
"""A site without any statement comes to ten times its budget."""
EARNED_BY_NUMBERS = 0.2
"""Statements without a new word may still be data, such as measurements."""
_QUEUES = 1000
_MOST_WORDS = 20_000
_WORDS_IN = 16 * 1024
_ADDRESS = re.compile(rb"""https?://[^\s"'<>]*|(?:href|src)\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>]*)|<[^<>\s]*>""")
_WORD = re.compile(rb"[A-Za-z\x80-\xff]{3,}")
_TEMPLATES = 10_000
_DIGITS = b"0123456789"
_SPOKEN_FOR = re.compile(r"[^/]*[0-9][^/]*")
_LOOKED_AT = 256 * 1024


class _Pages(msgspec.Struct):
    visits: int = 0
    bodies: set[int] = msgspec.field(default_factory=set)
    parked: bool = False


class Traps:
    """Remembers what one worker has seen of each queue, in bounded memory."""

    def __init__(self, host_visits: int, monotony: int, host_budget: int = 0) -> None:
        """`monotony` pages of a template are looked at, 0 for none."""
        self._host_visits = host_visits
        self._host_budget = host_budget
        self._monotony = monotony
        self._templates: OrderedDict[str, _Pages] = OrderedDict()
        self._words: OrderedDict[str, set[int]] = OrderedDict()

    def refusal(self, queue: str, url: str, visits: int, earned: float) -> str | None:
        """Why a URL of a queue is not visited any more, after so many visits to it that earned so much."""
        if visits >= self._host_visits:
            return f"more than {self._host_visits} visits to {queue} (limit permit.host_visits)"
        if self._host_budget and visits >= self._host_budget + earned:
            return (
                f"{visits} visits to {queue} brought too little that is new, and few other hosts link to it"
                " (limit permit.host_budget)"
            )
        template = template_of(url)
        pages = self._templates.get(template)
        if pages is not None and pages.parked:
            return (
                f"{self._monotony} pages like {template[:200]} differ in their numbers only and hold no data"
                " (limit permit.monotony)"
            )
        return None

    def looks(self, visits: int) -> bool:
        """Whether it matters what a document earns: not as long as half of the budget is left."""
        return self._host_budget > 0 and visits >= self._host_budget / 2

    def earned(self, queue: str, start: bytes, quads: int) -> float:
        """How many more visits a document has earned its queue; `start` is the first part of its body."""
        known = self._words.setdefault(queue, set())
        self._words.move_to_end(queue)
        if len(self._words) > _QUEUES:
            self._words.popitem(last=False)
        new = words_of(start) - known
        if len(known) > _MOST_WORDS:
            known.clear()
        known |= new
        if quads:
            return 1 + min(len(new), MOST_EARNED) if new else EARNED_BY_NUMBERS
        return EARNED_BY_TEXT if new else 0.0

    def read(self, url: str, body: bytes | None, quads: int) -> None:
        """What a page held. One with statements shows that its template is no trap."""
        if not self._monotony or body is None:
            return
        template = template_of(url)
        if quads:
            self._templates.pop(template, None)
            return
        pages = self._templates.setdefault(template, _Pages())
        self._templates.move_to_end(template)
        while len(self._templates) > _TEMPLATES:
            self._templates.popitem(last=False)
        pages.visits += 1
        pages.bodies.add(hash(body[:_LOOKED_AT].translate(None, _DIGITS)))
        if pages.visits >= self._monotony:
            pages.parked = len(pages.bodies) <= NEW_SHARE * self._monotony
            pages.visits = 0
            pages.bodies.clear()


def words_of(start: bytes) -> set[int]:
    """The words of a document, outside of tags and addresses, as hashes."""
    return {hash(word.lower()) for word in _WORD.findall(_ADDRESS.sub(b" ", start[:_WORDS_IN]))}


def template_of(url: str) -> str:
    """What URLs have in common that are made by one program: no numbers, and of the query only the names.

    >>> template_of("http://a.test/cal/2024-05/view?day=7&x=y&day=8")
    'http://a.test/cal/#/view?day&x'
    """
    place, _, query = url.partition("?")
    scheme, _, rest = place.partition("://")
    host, slash, path = rest.partition("/")
    names = sorted({pair.partition("=")[0] for pair in query.split("&")} if query else ())
    shape = f"{scheme}://{host}{slash}{_SPOKEN_FOR.sub('#', path)}"
    return f"{shape}?{'&'.join(names)}" if names else shape
