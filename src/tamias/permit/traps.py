"""When a site is left alone because it has no end: too many visits, or pages that all say the same.

What a URL looks like is judged before it is known (`filters/trap.py`); this is about what came of visits.
"""

import re
from collections import Counter, OrderedDict

import msgspec

NEW_SHARE = 0.1
"""A template goes on as long as this share of its pages says something new."""
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

    def __init__(self, host_visits: int, monotony: int) -> None:
        """`monotony` pages of a template are looked at, 0 for none."""
        self._host_visits = host_visits
        self._monotony = monotony
        self._visits: Counter[str] = Counter()
        self._templates: OrderedDict[str, _Pages] = OrderedDict()

    def refusal(self, queue: str, url: str) -> str | None:
        """Why a URL of a queue is not visited any more."""
        if self._visits[queue] >= self._host_visits:
            return f"more than {self._host_visits} visits to {queue} (limit permit.host_visits)"
        template = template_of(url)
        pages = self._templates.get(template)
        if pages is not None and pages.parked:
            return (
                f"{self._monotony} pages like {template[:200]} differ in their numbers only and hold no data"
                " (limit permit.monotony)"
            )
        return None

    def visited(self, queue: str) -> None:
        """One more visit."""
        self._visits[queue] += 1

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
