"""The detection of sites without end: their budget is used up, or their pages all say the same.

A host has a budget of visits, which is counted with the host for all workers. It grows with what is new:
words that none of its documents had, statements, links from other hosts. Numbers and the host's own addresses
are what a program invents without end: they earn nothing.

What a URL looks like is judged before it is known (`filters/url_filters.py`), here what came of visits.
"""

import re
from collections import OrderedDict
from hashlib import sha256
from zlib import crc32

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
_CONTENT = (b"<main", b"<article", b"<body")
"""Where the content of a page begins; its head and its menus are those of all pages."""
_ADDRESS = re.compile(rb"""https?://[^\s"'<>]*|(?:href|src)\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>]*)|<[^<>\s]*>""")
_WORD = re.compile(rb"[A-Za-z\x80-\xff]{3,}")
_TEMPLATES = 10_000
_DIGITS = b"0123456789"
_SPOKEN_FOR = re.compile(r"[^/]*[0-9][^/]*")
LOOKED_AT = 256 * 1024
SHARED_PART = 0.05
"""Of `permit.monotony`: from so many pages alike on, they are counted with the host, for all workers."""
_MOST_SHARED = 50
SAMPLE = 20
"""Resources of one folder that are requested, where an endpoint describes them and the server has none."""
_FOUND = 0
"""Stands in the place of a text: a resource of the folder was found."""


class Pages(msgspec.Struct, array_like=True):
    """Pages of one template: how many were visited, and how many different texts they had but for numbers."""

    visits: int = 0
    texts: list[int] = []


Alike = dict[int, Pages]
"""Pages that are alike, by the hash of their template: counted with the host."""
_ALIKE = msgspec.msgpack.Decoder(Alike)


def unpacked_alike(data: bytes) -> Alike:
    """Return what was counted with a host."""
    return _ALIKE.decode(data) if data else {}


def packed_alike(alike: Alike) -> bytes:
    """The same as it is kept."""
    return msgspec.msgpack.encode(alike)


class Traps:
    """Remembers what one worker has seen of each queue, in bounded memory."""

    def __init__(self, host_visits: int, monotony: int, host_budget: int = 0) -> None:
        """`monotony` pages of a template are looked at, 0 for none."""
        self._host_visits = host_visits
        self._host_budget = host_budget
        self._monotony = monotony
        self._most_texts = max(1, NEW_SHARE * monotony)
        self._unread = max(0, int(SHARED_PART * monotony) - 2)
        self._templates: OrderedDict[int, Pages] = OrderedDict()
        self._words: OrderedDict[str, set[int]] = OrderedDict()

    def refusal(self, queue: str, url: str, visits: int, earned: float, alike: Alike) -> str | None:
        """Return why a URL of a queue is not visited, after so many visits that earned so much.

        `alike` is what was counted with the host.
        """
        if visits >= self._host_visits:
            return f"{queue} was visited {visits} times (limit permit.host_visits)"
        if self._host_budget and visits >= self._host_budget + earned:
            return (
                f"{visits} visits to {queue} found too little new content, and few other hosts link to it"
                " (limit permit.host_budget)"
            )
        if not self._monotony or not alike:
            return None
        template = template_of(url)
        pages = alike.get(_number(template))
        if pages is not None and self._are_monotonous(pages):
            return (
                f"{self._monotony} pages like {template[:200]} differ in their numbers only and hold no data"
                " (limit permit.monotony)"
            )
        return None

    def copied(self, url: str, alike: Alike, *, described: bool) -> str | None:
        """Return why a URL need not be requested after a copy: it is the endpoint, or nobody serves it.

        `described` says whether the copy of an endpoint describes it.
        """
        if _number(f"endpoint {url}") in alike:
            return "requested by the copy of this endpoint"
        pages = alike.get(_folder_number(url)) if described else None
        if pages is None or pages.visits < SAMPLE or pages.texts:
            return None
        return (
            f"described by the copy of an endpoint; {SAMPLE} resources like it were requested and not found"
        )

    def note_endpoint(self, url: str, alike: Alike) -> None:
        """Remember with its host that an endpoint was copied."""
        alike[_number(f"endpoint {url}")] = Pages(visits=SAMPLE)
        _keep_most_visited(alike)

    def note_described(self, url: str, *, found: bool, alike: Alike) -> bool:
        """Count such a resource with its host; return whether that changes what is counted."""
        pages = alike.setdefault(_folder_number(url), Pages())
        if pages.texts:
            return False
        pages.visits += 1
        pages.texts = [_FOUND] if found else []
        _keep_most_visited(alike)
        return True

    def looks(self, visits: int) -> bool:
        """Return whether it matters what a document earns: not as long as half of the budget is left."""
        return self._host_budget > 0 and visits >= self._host_budget / 2

    def earned(self, queue: str, start: bytes, quads: int) -> float:
        """Return how many more visits a document earned its queue; `start` is the first part of its body."""
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

    def read(self, url: str, body: bytes | None, quads: int, alike: Alike) -> bool:
        """Note what a page held; whether that changes what is counted with its host.

        One with statements shows that its template is no trap.
        """
        if not self._monotony or body is None or (quads and not self._templates and not alike):
            return False
        template = _number(template_of(url))
        if quads:
            self._templates.pop(template, None)
            return alike.pop(template, None) is not None
        pages = alike.get(template) or self._known(template)
        pages.visits += 1
        # Most templates have few pages; two are enough to see whether they differ. And beyond so many texts,
        # how many more there are makes no difference.
        if pages.visits > self._unread and len(pages.texts) <= self._most_texts:
            text = _text_number(body)
            if text not in pages.texts:
                pages.texts.append(text)
        if len(pages.texts) > self._most_texts:
            if pages.visits >= self._monotony:
                pages.visits, pages.texts = 0, []
            return alike.pop(template, None) is not None
        return self._share(template, pages, alike)

    def _are_monotonous(self, pages: Pages) -> bool:
        return pages.visits >= self._monotony and len(pages.texts) <= self._most_texts

    def _known(self, template: int) -> Pages:
        pages = self._templates.setdefault(template, Pages())
        self._templates.move_to_end(template)
        while len(self._templates) > _TEMPLATES:
            self._templates.popitem(last=False)
        return pages

    def _share(self, template: int, pages: Pages, alike: Alike) -> bool:
        """Count pages with the host when they look like a trap."""
        if pages.visits < SHARED_PART * self._monotony:
            return False
        if len(pages.texts) > max(1, NEW_SHARE * pages.visits) and template not in alike:
            return False
        alike[template] = pages
        _keep_most_visited(alike)
        return True


def _keep_most_visited(alike: Alike) -> None:
    while len(alike) > _MOST_SHARED:
        del alike[min(alike, key=lambda each: alike[each].visits)]


def _text_number(body: bytes) -> int:
    """The same where only numbers differ. On most machines SHA-256 takes half as long as a CRC."""
    return int.from_bytes(sha256(body[:LOOKED_AT].translate(None, _DIGITS)).digest()[:4])


def _folder_number(url: str) -> int:
    return _number(f"described {url.partition('?')[0].rpartition('/')[0]}")


def _number(template: str) -> int:
    return crc32(template.encode("utf-8", "surrogatepass"))


def words_of(start: bytes) -> set[int]:
    """The words in the content of a document, outside of tags and addresses, as hashes.

    >>> words_of(b"<head><title>Menu</title></head><body>menu<main>Words</main>") == words_of(b"words")
    True
    """
    lower = start.lower()
    begin = max(0, next((at for mark in _CONTENT if (at := lower.find(mark)) >= 0), 0))
    return {hash(word) for word in _WORD.findall(_ADDRESS.sub(b" ", lower[begin : begin + _WORDS_IN]))}


def template_of(url: str) -> str:
    """Return the common form of URLs made by one program: no numbers, and of the query only the names.

    >>> template_of("http://a.test/cal/2024-05/view?day=7&x=y&day=8")
    'http://a.test/cal/#/view?day&x'
    """
    place, _, query = url.partition("?")
    scheme, _, rest = place.partition("://")
    host, slash, path = rest.partition("/")
    names = sorted({pair.partition("=")[0] for pair in query.split("&")} if query else ())
    shape = f"{scheme}://{host}{slash}{_SPOKEN_FOR.sub('#', path)}"
    return f"{shape}?{'&'.join(names)}" if names else shape
