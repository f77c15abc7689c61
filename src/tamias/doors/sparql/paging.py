"""The ways of paging, one request or page at a time; what an answer proves is decided here.

An answer is whole if it has as many rows as the endpoint counts, or fewer than the endpoint is known to give.
"""

from collections import deque
from collections.abc import Collection

from msgspec.structs import replace
from pyoxigraph import BlankNode, NamedNode, Quad

from tamias.doors.sparql import queries
from tamias.doors.sparql.answers import Row
from tamias.doors.sparql.conversation import Conversation, Trouble
from tamias.doors.sparql.labels import labels_hold
from tamias.doors.sparql.limits import Limits
from tamias.doors.sparql.parts import MOST_BACKBONES, Part, following, inside, opened, parted
from tamias.doors.sparql.scope import Span
from tamias.doors.sparql.spans import Cuts
from tamias.doors.sparql.state import State
from tamias.doors.sparql.terms import Page, digest, writable
from tamias.model.finding import Finding, Problem, Quads

WORTH_A_BACKBONE = 5
"""Pages still to come, for which it pays to look for a predicate to list subjects by."""
MOST_SPLITS = 60
_MOST_STRIKES = 3
_PATIENCE = 5
"""Good pages before they are made larger."""


class Pager:
    """Goes on with the part on top of the stack. A `Trouble` leaves it as it was: ask again, or otherwise."""

    def __init__(self, conversation: Conversation, state: State, limits: Limits) -> None:
        self._conversation = conversation
        self._state = state
        self._limits = limits
        self._listed: dict[int, deque[tuple[str, int | None]]] = {}
        self._found: dict[int, int] = {}
        self._cuts: dict[int, Cuts] = {}
        self._splits = 0
        self._good = 0
        self._stride = 20

    @property
    def part(self) -> Part:
        """The part at work."""
        return self._state.stack[-1]

    @part.setter
    def part(self, part: Part) -> None:
        self._state.stack[-1] = part

    @property
    def _depth(self) -> int:
        return len(self._state.stack)

    async def advance(self) -> list[Finding]:
        """Does one thing; returns what a page brought, or nothing yet. Raises `Trouble`."""
        ways = {
            "whole": self._whole,
            "blanks": self._blanks,
            "backbone": self._backbone,
            "keys": self._keys,
            "rows": self._rows,
            "offset": self._offset,
        }
        return await ways[self.part.way]()

    def change(self, part: Part) -> None:
        """Takes up the same part in another way; what was copied in the way so far does not count."""
        self._uncount(self.part.copied - part.copied, self.part)
        self._forget()
        self.part = part

    def descend(self) -> bool:
        """Goes into the next of the listed keys, if any are listed."""
        listed = self._listed.get(self._depth)
        if self.part.way != "keys" or not listed:
            return False
        self._enter(*listed.popleft())
        return True

    def leave(self) -> None:
        """Ends the part, whether all of it came or not."""
        self._forget()
        done = self._state.stack.pop()
        if self._state.stack:
            around = self.part
            name = done.name if around.way == "keys" else around.done
            self.part = replace(around, copied=around.copied + done.copied, done=name)

    async def _whole(self) -> list[Finding]:
        part, limit = self.part, self._state.page
        if part.expected is not None and part.expected > limit:
            self.part = opened(part, stable=self._stable)
            return []
        rows = await self._select(queries.whole(part.scope, limit))
        if len(rows) != part.expected and not await self._uncut(
            len(rows), limit, queries.whole(part.scope, 1, len(rows))
        ):
            self.part = opened(part, stable=self._stable)
            return []
        found = await self._page(rows, part, safe=True)
        self.leave()
        return found

    async def _blanks(self) -> list[Finding]:
        part, limit = self.part, self._state.page
        rows = await self._select(queries.with_blanks(part.scope, limit))
        if await self._uncut(len(rows), limit, queries.with_blanks(part.scope, 1, len(rows))):
            found = await self._page(rows, part, safe=True)
            self._finish(replace(self.part, scope=replace(part.scope, blankless=True)))
            return found
        self._finish(part)
        if self._state.relabelled:
            return []
        self._state.relabelled = True
        return [
            Problem("blank nodes have other labels in every answer, and do not fit into one: parted by page")
        ]

    async def _backbone(self) -> list[Finding]:
        part = self.part
        remaining = part.remaining or 0
        worth = part.scope.plain and remaining > WORTH_A_BACKBONE * self._state.page
        if worth and self._state.counting and len(part.without) < MOST_BACKBONES:
            rows = await self._select(queries.backbone(part.scope, part.without))
            if rows and "p" in rows[0] and writable(rows[0]["p"].text):
                keys = _number(rows[0])
                part = replace(part, through=rows[0]["p"].text, keys=keys)
        self._finish(part)
        return []

    async def _keys(self) -> list[Finding]:
        listed = self._listed.get(self._depth)
        if listed is None:
            await self._list()
            return []
        if not listed:
            self._next_span()
            return []
        batch = self._batch(listed)
        if not batch:
            self._enter(*listed.popleft())
            return []
        return await self._fetch(batch, listed)

    async def _list(self) -> None:
        part, limit = self.part, self._state.page
        through, without = part.through, part.without

        def listing(limit: int, offset: int, *, counted: bool) -> str:
            return queries.listing(
                part.scope,
                part.key,
                part.asked,
                limit,
                offset,
                counted=counted,
                through=through,
                without=without,
            )

        rows = await self._select(listing(limit, 0, counted=self._state.counting))
        keys = {row[part.key].text: _number(row) for row in rows if part.key in row}
        if not await self._uncut(len(rows), limit, listing(1, len(rows), counted=False)):
            self._split(keys, part.keys)
            return
        self._splits = 0
        self._found[self._depth] = len(keys)
        names = sorted(key for key in keys if part.done is None or key > part.done)
        self._listed[self._depth] = deque((name, keys[name]) for name in names)

    def _batch(self, listed: deque[tuple[str, int | None]]) -> list[tuple[str, int | None]]:
        """As many keys as fit into a page; none when the first alone does not."""
        batch: list[tuple[str, int | None]] = []
        room, letters = self._state.page, self._conversation.most_query
        most = self._limits.most_keys if self._state.counting else self._stride
        for name, count in listed:
            room -= count or 0
            letters -= 3 * len(name)
            if room < 0 or (batch and (letters < 0 or len(batch) >= most)):
                break
            batch.append((name, count))
        return batch

    async def _fetch(
        self, batch: list[tuple[str, int | None]], listed: deque[tuple[str, int | None]]
    ) -> list[Finding]:
        part, limit = self.part, self._state.page
        names = [name for name, _ in batch if writable(name)]
        counts = [count for name, count in batch if writable(name)]
        after = replace(part, done=batch[-1][0])
        quads = await self._triples(part, names, counts)
        if quads is not None:
            found = self._kept(quads, after)
            self._batch_done(batch, listed, len(quads))
            return found
        rows = await self._select(queries.page(part.scope, part.key, names, limit)) if names else []
        probe = queries.page(part.scope, part.key, names, 1, len(rows))
        if names and not await self._complete(rows, counts, limit, probe):
            self._narrow(batch, listed)
            return []
        found = await self._page(rows, after, safe=part.key == "g", unreadable=len(batch) - len(names))
        if self._listed.get(self._depth) is listed:
            self._batch_done(batch, listed, len(rows))
        return found

    def _batch_done(
        self, batch: list[tuple[str, int | None]], listed: deque[tuple[str, int | None]], rows: int
    ) -> None:
        for _ in batch:
            listed.popleft()
        self._state.graphs += len(batch) if self.part.key == "g" else 0
        fitting = len(batch) * self._state.page * 3 // (5 * max(1, rows))
        self._stride = max(1, min(fitting, 4 * len(batch), self._limits.most_keys))

    async def _triples(self, part: Part, names: list[str], counts: list[int | None]) -> list[Quad] | None:
        """The page by CONSTRUCT, where that brings just what was counted, and no blank nodes; else None."""
        manner = self._state.manner
        if manner.strikes >= _MOST_STRIKES or part.key == "g" or not names or None in counts:
            return None
        try:
            query = queries.constructed_page(part.scope, part.key, names, self._state.page)
            quads = await self._conversation.triples(query)
        except Trouble as trouble:
            if trouble.final:
                raise
            manner.strikes += _MOST_STRIKES if trouble.lasting else 1
            return None
        if len(quads) != sum(count or 0 for count in counts):
            manner.strikes += 1
            return None
        if any(type(quad.object) is BlankNode or type(quad.subject) is BlankNode for quad in quads):
            manner.strikes = _MOST_STRIKES  # their labels may be others than those in rows
            return None
        return quads

    def _kept(self, quads: list[Quad], part: Part) -> list[Finding]:
        """Keeps triples that are sound, and the part's new position."""
        self._state.most = max(self._state.most, len(quads))
        self.part = replace(part, copied=part.copied + len(quads))
        self._count(len(quads), part)
        graph = Page(part.scope).graph
        if isinstance(graph, NamedNode):
            quads = [Quad(quad.subject, quad.predicate, quad.object, graph) for quad in quads]
        return [Quads(quads)]

    async def _complete(self, rows: list[Row], counts: list[int | None], limit: int, probe: str) -> bool:
        """Whether a page has all that its keys have."""
        known = [count for count in counts if count is not None]
        if len(known) < len(counts):
            return await self._uncut(len(rows), limit, probe)
        if len(rows) == sum(known):
            self._state.most = max(self._state.most, len(rows))
            return True
        if len(rows) > sum(known):
            return len(rows) < limit
        # Fewer than were counted a moment ago: cut at a cap, or the endpoint has changed.
        if not await self._conversation.select(probe):
            return True
        if not rows:
            raise Trouble("gave nothing, though there is something")
        self._capped(len(rows))
        return False

    def _narrow(self, batch: list[tuple[str, int | None]], listed: deque[tuple[str, int | None]]) -> None:
        """Asks for less at once, after a page that was not complete."""
        counts = [count for _, count in batch if count is not None]
        if counts and sum(counts) <= self._state.page:
            del self._listed[self._depth]  # they have grown: to be counted anew
        elif counts:
            return
        elif len(batch) > 1:
            self._stride = len(batch) // 2
        else:
            self._enter(*listed.popleft())

    def _next_span(self) -> None:
        """All listed keys are done: goes to the next span, or ends this way."""
        part = self.part
        del self._listed[self._depth]
        found = self._found.pop(self._depth, 0)
        if part.span.upto is None or part.satisfied:
            self._finish(part)
        else:
            self.part = replace(part, span=self._span_after(part.span.upto, found), done=None)

    def _enter(self, name: str, count: int | None) -> None:
        part = self.part
        if not writable(name):
            self._state.unreadable += count or 1
            self.part = replace(part, done=name, copied=part.copied + (count or 0))
            return
        self._state.graphs += part.key == "g"
        self._state.stack.append(inside(part, name, count, stable=self._stable))

    async def _rows(self) -> list[Finding]:
        part, limit = self.part, self._state.page
        rows = await self._select(queries.rows(part.scope, part.asked, limit))
        if not await self._uncut(len(rows), limit, queries.rows(part.scope, part.asked, 1, len(rows))):
            texts = {row["o"].text: None for row in rows if "o" in row}
            if set(texts) == {part.asked.upto}:
                after, *inner = parted(part, next(iter(texts)))
                self._state.stack[-1:] = [after, *inner]
            else:
                self._split(texts, part.remaining)
            return []
        self._splits = 0
        upto = part.span.upto
        moved = part if upto is None else replace(part, span=self._span_after(upto, len(rows)))
        found = await self._page(rows, moved)
        if upto is None or self.part.satisfied:
            self._finish(self.part)
        return found

    async def _offset(self) -> list[Finding]:
        if self._state.manner.form == "construct":
            return await self._constructed()
        part = self.part
        start = max(0, part.offset - 1)
        rows = await self._select(queries.ordered(part.scope, self._state.page, start, order=part.order))
        new = rows[1:] if part.offset else rows
        if part.offset and (not rows or digest(rows[0]) != part.last):
            self._state.shuffled = True
        if not new:
            self._finish(part)
            return []
        moved = replace(part, offset=part.offset + len(new), last=digest(new[-1]))
        found = await self._page(new, moved)
        if self.part.satisfied:
            self._finish(self.part)
        return found

    async def _constructed(self) -> list[Finding]:
        part = self.part
        query = queries.constructed(part.scope, self._state.page, part.offset, order=part.order)
        quads = await self._conversation.construct(query)
        if not quads:
            self._finish(part)
            return []
        if any(isinstance(term, BlankNode) for quad in quads for term in (quad.subject, quad.object)):
            self._state.relabelled = True
        return self._kept(quads, replace(part, offset=part.offset + len(quads)))

    async def _page(
        self, rows: list[Row], part: Part, *, safe: bool = False, unreadable: int = 0
    ) -> list[Finding]:
        """Keeps the rows and the part's new position; unless they show that labels do not hold."""
        if self._state.labels == "unknown" and any(
            cell.type == "bnode" for row in rows for cell in row.values()
        ):
            stable = await labels_hold(self._conversation)
            self._state.labels = "stable" if stable else "unstable"
            if not self._stable and not safe and self._reopened():
                return []
        page = Page(part.scope, "" if self._stable else f"p{self._state.pages}x")
        page.take(rows)
        self.part = replace(part, copied=part.copied + len(rows))
        self._count(len(rows), part)
        self._state.unreadable += page.unreadable + unreadable
        found: list[Finding] = [Quads(page.quads)] if page.quads else []
        if page.unreadable:
            found.append(Problem(f"{page.unreadable} rows of an answer are no RDF: {page.example}"))
        if unreadable:
            found.append(Problem(f"{unreadable} names of the endpoint are no IRIs, and cannot be asked for"))
        return found

    def _reopened(self) -> bool:
        """Begins the graph anew, with its blank nodes in one answer if they fit."""
        for depth, part in enumerate(self._state.stack, 1):
            if part.key != "g" and not part.scope.nameless_graphs:
                self._uncount(sum(each.copied for each in self._state.stack[depth - 1 :]), part)
                while self._depth > depth:
                    self._forget()
                    self._state.stack.pop()
                self._forget()
                self.part = opened(part, stable=False)
                return True
        return False

    @property
    def _stable(self) -> bool:
        return self._state.labels != "unstable"

    async def _select(self, query: str) -> list[Row]:
        return await self._conversation.select(query)

    async def _uncut(self, rows: int, limit: int, probe: str) -> bool:
        """Whether so many rows are all there are; `probe` asks for one more, which is right in any order."""
        if rows >= limit:
            return False
        if rows > self._state.most:
            if await self._select(probe):
                self._capped(rows)
                return False
            self._state.most = rows
        return True

    def _capped(self, rows: int) -> None:
        self._state.cap = rows
        self._state.page = max(2, min(self._state.page, rows))

    def _split(self, keys: Collection[str], total: int | None) -> None:
        """Takes a smaller span, after one that did not fit."""
        self._splits += 1
        if self._splits > MOST_SPLITS or not keys:
            self._splits = 0
            raise Trouble("the order of strings does not hold", lasting=True)
        cuts = self._cuts.setdefault(self._depth, Cuts())
        part = self.part
        upto = cuts.split(keys, part.span.upto, self._state.page, total)
        self.part = replace(part, span=Span(after=part.span.after, upto=upto))

    def _span_after(self, end: str, found: int) -> Span:
        cuts = self._cuts.get(self._depth)
        return Span(after=end, upto=cuts.after(found, self._state.page) if cuts else None)

    def _finish(self, part: Part) -> None:
        """Goes on to the next way of the same statements; leaves the part when nothing is left."""
        self._forget()
        more = None if part.satisfied else following(part)
        if more is None:
            self.part = part
            self.leave()
        else:
            self.part = more

    def _forget(self) -> None:
        self._listed.pop(self._depth, None)
        self._found.pop(self._depth, None)
        self._cuts.pop(self._depth, None)

    def _count(self, rows: int, part: Part) -> None:
        state = self._state
        state.pages += 1
        state.statements += rows
        state.named += rows if part.scope.named else 0
        self._good += 1
        if self._good % _PATIENCE == 0:
            most = min(self._limits.page, state.cap or self._limits.page)
            state.page = max(state.page, min(most, state.page * 3 // 2))

    def _uncount(self, rows: int, part: Part) -> None:
        self._state.statements -= rows
        self._state.named -= rows if part.scope.named else 0


def _number(row: Row) -> int | None:
    """The count in a row; None without one."""
    try:
        return int(row["n"].text)
    except (KeyError, ValueError):
        return None
