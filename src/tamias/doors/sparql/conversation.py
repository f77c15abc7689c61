"""Asks an endpoint in the manner it understands; whatever goes wrong becomes one `Trouble`."""

from urllib.parse import urlencode

from pyoxigraph import Quad, RdfFormat, parse

from tamias.doors.sparql.answers import Answer, Row, Unreadable, read_answer
from tamias.doors.sparql.state import Form, State
from tamias.model.capture import Capture, Request
from tamias.model.finding import Problem, Quads
from tamias.model.outcome import Outcome
from tamias.protocols import Guide

LONG_QUERY = 2_000
"""Characters of a URL that every server takes."""
MOST_GET = 6_000
"""The same where POST is refused."""
MOST_POST = 256_000

_ACCEPT: dict[Form, str] = {
    "json": "application/sparql-results+json, application/json;q=0.9, application/sparql-results+xml;q=0.5",
    "xml": "application/sparql-results+xml, application/xml;q=0.5",
    "tsv": "text/tab-separated-values",
    "construct": "application/n-triples, text/turtle;q=0.9, application/rdf+xml;q=0.5",
}
_TRIPLES = "application/n-triples"
_NO_GET = frozenset({405, 411, 414, 431, 501})
_NO_POST = frozenset({403, 405, 413, 415, 501})
_TEMPORARY = frozenset({408, 425, 429})
_PARTIAL = ("x-sql-state", "S1TAT")
"""How Virtuoso says that time was up, above an answer that looks complete."""


class Trouble(Exception):
    """A request that brought no answer. `lasting` when the same again will not either."""

    def __init__(self, reason: str, capture: Capture | None = None, *, lasting: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.capture = capture
        self.lasting = lasting

    @property
    def final(self) -> bool:
        """Whether nothing more may be asked now: a rule forbids it, or the server wants to be left alone."""
        if self.capture is None:
            return False
        return self.capture.outcome is Outcome.REFUSED or self.capture.retry_after_ms is not None


class Conversation:
    """With one endpoint, through a guide."""

    def __init__(self, guide: Guide, url: str, state: State, most_bytes: int) -> None:
        """What is learned about the endpoint's manner goes into the state; an answer has `most_bytes`."""
        self.guide = guide
        self.url = url
        self._state = state
        self._most_bytes = most_bytes

    @property
    def most_query(self) -> int:
        """The most characters of a query."""
        return MOST_GET if self._state.manner.post is False else MOST_POST

    async def select(self, query: str) -> list[Row]:
        """The rows of a SELECT. Raises `Trouble`."""
        return (await self.answer(query)).rows

    async def answer(self, query: str) -> Answer:
        """The same with the variables."""
        capture = await self._asked(query)
        try:
            return read_answer(self.guide.body(capture, self._most_bytes))
        except Unreadable as error:
            raise Trouble(f"answered with {error}", capture) from None

    async def construct(self, query: str) -> list[Quad]:
        """The triples of a CONSTRUCT. Raises `Trouble`."""
        capture = await self._asked(query)
        quads: list[Quad] = []
        for finding in self.guide.read(capture):
            if isinstance(finding, Problem):
                raise Trouble(f"answered with broken RDF: {finding.what}", capture)
            if isinstance(finding, Quads):
                quads += finding.quads
        return quads

    async def triples(self, query: str) -> list[Quad]:
        """The same in N-Triples, which are read five times as fast as any rows. Raises `Trouble`."""
        capture = await self._asked(query, _TRIPLES)
        if "n-triples" not in (capture.told_type or "").lower():
            raise Trouble("answered with other than N-Triples", capture, lasting=True)
        body = self.guide.body(capture, self._most_bytes)
        try:
            return list(parse(body, format=RdfFormat.N_TRIPLES, lenient=True))
        except SyntaxError as error:
            raise Trouble(f"answered with broken N-Triples: {error}", capture) from None

    async def number(self, query: str) -> int:
        """The `?n` of the only row. Raises `Trouble`."""
        rows = await self.patient(query)
        try:
            return int(rows[0]["n"].text)
        except (IndexError, KeyError, ValueError):
            raise Trouble("a count without a number", lasting=True) from None

    async def patient(self, query: str, tries: int = 3) -> list[Row]:
        """The rows of a small query, asked again when that can help. Raises `Trouble`."""
        return (await self.patient_answer(query, tries)).rows

    async def patient_answer(self, query: str, tries: int = 3) -> Answer:
        """The same with the variables."""
        while True:
            try:
                return await self.answer(query)
            except Trouble as trouble:
                tries -= 1
                if trouble.final or trouble.lasting or not tries:
                    raise

    async def _asked(self, query: str, accept: str | None = None) -> Capture:
        manner = self._state.manner
        accept = accept or _ACCEPT[manner.form]
        post = len(query) > LONG_QUERY if manner.post is None else manner.post
        capture = await self._ask(query, accept, post=post)
        if manner.post is None and capture.status in (_NO_POST if post else _NO_GET):
            if post:
                manner.post = False
                if len(query) > MOST_GET:
                    raise Trouble("POST is refused", capture)
            second = await self._ask(query, accept, post=not post)
            if not post and second.outcome is Outcome.OK:
                manner.post = True
            capture = second if second.outcome is Outcome.OK else capture
        return self._sound(capture)

    async def _ask(self, query: str, accept: str, *, post: bool) -> Capture:
        self._state.requests += 1
        form = urlencode({"query": query})
        if post:
            kind = "application/x-www-form-urlencoded"
            return await self.guide.ask(
                Request(url=self.url, accept=accept, body=form.encode(), content_type=kind)
            )
        return await self.guide.ask(
            Request(url=f"{self.url}{'&' if '?' in self.url else '?'}{form}", accept=accept)
        )

    def _sound(self, capture: Capture) -> Capture:
        """The capture, if there is a whole answer in it."""
        if capture.outcome is not Outcome.OK or capture.body is None:
            status = capture.status or 0
            lasting = 400 <= status < 500 and status not in _TEMPORARY
            raise Trouble(capture.reason, capture, lasting=lasting)
        if capture.body.size > self._most_bytes:
            raise Trouble(f"an answer of {capture.body.size} bytes, more than {self._most_bytes}", capture)
        if capture.hops and capture.hops[-1].header(_PARTIAL[0]) == _PARTIAL[1]:
            raise Trouble("a partial answer: the server's time was up", capture)
        return capture
