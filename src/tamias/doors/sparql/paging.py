"""The ways of paging, one request or page at a time; what an answer proves is decided here.

An answer is whole if it has as many rows as the endpoint counts, or fewer than the endpoint is known to give.
"""

from functools import partial

from msgspec.structs import replace
from pyoxigraph import BlankNode, NamedNode, Quad

from tamias.doors.sparql import queries
from tamias.doors.sparql.answers import Row
from tamias.doors.sparql.conversation import Conversation, Trouble
from tamias.doors.sparql.labels import labels_hold
from tamias.doors.sparql.limits import Limits
from tamias.doors.sparql.parts import MOST_BACKBONES, Part, parted
from tamias.doors.sparql.standing import Key, Standing
from tamias.doors.sparql.terms import Page, digest, writable
from tamias.model.finding import Finding, Problem, Quads

WORTH_A_BACKBONE = 5
"""Pages still to come, for which it pays to look for a predicate to list subjects by."""
_MOST_STRIKES = 3


class Pager:
    """Goes on with the part at work. A `Trouble` leaves it as it was: ask again, or otherwise."""

    def __init__(self, conversation: Conversation, standing: Standing, limits: Limits) -> None:
        self._conversation = conversation
        self._at = standing
        self._state = standing.state
        self._limits = limits
        self._stride = 20
        """Keys asked for at once where they are not counted."""

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
        return await ways[self._at.part.way]()

    async def _whole(self) -> list[Finding]:
        part, limit = self._at.part, self._state.page
        if part.expected is not None and part.expected > limit:
            self._at.open()
            return []
        rows = await self._conversation.select(queries.whole(part.scope, limit))
        probe = queries.whole(part.scope, 1, len(rows))
        if len(rows) != part.expected and not await self._uncut(len(rows), limit, probe):
            self._at.open()
            return []
        found = await self._page(rows, part, safe=True)
        self._at.leave()
        return found

    async def _blanks(self) -> list[Finding]:
        part, limit = self._at.part, self._state.page
        rows = await self._conversation.select(queries.with_blanks(part.scope, limit))
        if await self._uncut(len(rows), limit, queries.with_blanks(part.scope, 1, len(rows))):
            found = await self._page(rows, part, safe=True)
            self._at.finish(replace(self._at.part, scope=replace(part.scope, blankless=True)))
            return found
        self._at.finish(part)
        if self._state.relabelled:
            return []
        self._state.relabelled = True
        return [Problem("blank nodes have other labels in every answer, and do not fit into one")]

    async def _backbone(self) -> list[Finding]:
        part = self._at.part
        worth = part.scope.plain and (part.remaining or 0) > WORTH_A_BACKBONE * self._state.page
        if worth and self._state.counting and len(part.without) < MOST_BACKBONES:
            rows = await self._conversation.select(queries.backbone(part.scope, part.without))
            if rows and "p" in rows[0] and writable(rows[0]["p"].text):
                part = replace(part, through=rows[0]["p"].text, keys=_number(rows[0]))
        self._at.finish(part)
        return []

    async def _keys(self) -> list[Finding]:
        listed = self._at.listed
        if listed is None:
            await self._list()
        elif not listed:
            self._at.next_span()
        elif batch := self._batch():
            return await self._fetch(batch)
        else:
            self._at.descend()
        return []

    async def _list(self) -> None:
        part, state = self._at.part, self._state
        # As much as was listed before, lest a listing that is asked for again does not fit.
        limit = min(max(state.page, part.room), state.cap or self._limits.page)
        listing = partial(
            queries.listing, part.scope, part.key, part.span, through=part.through, without=part.without
        )
        rows = await self._conversation.select(listing(limit, counted=state.counting))
        keys = [Key(row[part.key].text, _number(row)) for row in rows if part.key in row]
        if await self._uncut(len(rows), limit, listing(1, len(rows), counted=False)):
            self._at.list(keys, limit)
        else:
            self._at.split([key.name for key in keys], part.keys)

    def _batch(self) -> list[Key]:
        """As many keys as fit into a page; none when the first alone does not."""
        batch: list[Key] = []
        room, letters = self._state.page, self._conversation.most_query
        most = self._limits.most_keys if self._state.counting else self._stride
        for key in self._at.listed or ():
            room -= key.statements or 0
            letters -= 3 * len(key.name)
            if room < 0 or (batch and (letters < 0 or len(batch) >= most)):
                break
            batch.append(key)
        return batch

    async def _fetch(self, batch: list[Key]) -> list[Finding]:
        part, limit, listed = self._at.part, self._state.page, self._at.listed
        sound = [key for key in batch if writable(key.name)]
        names = [key.name for key in sound]
        after = replace(part, done=batch[-1].name)
        quads = await self._triples(part, sound)
        if quads is not None:
            self._batch_done(batch, len(quads))
            return self._kept(quads, after)
        rows = (
            await self._conversation.select(queries.page(part.scope, part.key, names, limit)) if names else []
        )
        probe = queries.page(part.scope, part.key, names, 1, len(rows))
        if names and not await self._complete(rows, sound, limit, probe):
            self._narrow(batch)
            return []
        found = await self._page(rows, after, safe=part.key == "g", unsound=len(batch) - len(names))
        if self._at.listed is listed:
            self._batch_done(batch, len(rows))
        return found

    def _batch_done(self, batch: list[Key], rows: int) -> None:
        self._at.drop(len(batch))
        self._state.graphs += len(batch) if self._at.part.key == "g" else 0
        fitting = len(batch) * self._state.page * 3 // (5 * max(1, rows))
        self._stride = max(1, min(fitting, 4 * len(batch), self._limits.most_keys))

    async def _triples(self, part: Part, keys: list[Key]) -> list[Quad] | None:
        """The page by CONSTRUCT, where that brings just what was counted, and no blank nodes; else None."""
        manner = self._state.manner
        counts = [key.statements for key in keys if key.statements is not None]
        if manner.strikes >= _MOST_STRIKES or part.key == "g" or not keys or len(counts) < len(keys):
            return None
        try:
            names = [key.name for key in keys]
            query = queries.constructed_page(part.scope, part.key, names, self._state.page)
            quads = await self._conversation.triples(query)
        except Trouble as trouble:
            if trouble.final:
                raise
            manner.strikes += _MOST_STRIKES if trouble.lasting else 1
            return None
        if len(quads) != sum(counts):
            manner.strikes += 1
            return None
        if any(_has_blank(quad) for quad in quads):
            manner.strikes = _MOST_STRIKES  # their labels may be others than those in rows
            return None
        self._state.most = max(self._state.most, len(quads))
        return quads

    async def _complete(self, rows: list[Row], keys: list[Key], limit: int, probe: str) -> bool:
        """Whether a page has all that its keys have."""
        counts = [key.statements for key in keys if key.statements is not None]
        if len(counts) < len(keys):
            return await self._uncut(len(rows), limit, probe)
        if len(rows) == sum(counts):
            self._state.most = max(self._state.most, len(rows))
            return True
        if len(rows) > sum(counts):
            return len(rows) < limit
        # Fewer than were counted a moment ago: cut at a cap, or the endpoint has changed.
        if not await self._conversation.select(probe):
            return True
        if not rows:
            raise Trouble("gave nothing, though there is something")
        self._at.cap(len(rows))
        return False

    def _narrow(self, batch: list[Key]) -> None:
        """Asks for less at once, after a page that was not complete."""
        if batch[0].statements is not None:
            if sum(key.statements or 0 for key in batch) <= self._state.page:
                self._at.unlist()  # they have grown: to be counted anew
        elif len(batch) > 1:
            self._stride = len(batch) // 2
        else:
            self._at.descend()

    async def _rows(self) -> list[Finding]:
        part, limit = self._at.part, self._state.page
        rows = await self._conversation.select(queries.rows(part.scope, part.asked, limit))
        if not await self._uncut(len(rows), limit, queries.rows(part.scope, part.asked, 1, len(rows))):
            texts = {row["o"].text for row in rows if "o" in row}
            if texts == {part.asked.upto}:
                self._state.stack[-1:] = parted(part, texts.pop())
            else:
                self._at.split(texts, part.remaining)
            return []
        found = await self._page(rows, self._at.past_span(part, len(rows)))
        if part.span.upto is None or self._at.part.satisfied:
            self._at.finish(self._at.part)
        return found

    async def _offset(self) -> list[Finding]:
        if self._state.manner.form == "construct":
            return await self._constructed()
        part = self._at.part
        start = max(0, part.offset - 1)
        query = queries.ordered(part.scope, self._state.page, start, order=part.order)
        rows = await self._conversation.select(query)
        new = rows[1:] if part.offset else rows
        if part.offset and (not rows or digest(rows[0]) != part.last):
            self._state.shuffled = True
        if not new:
            self._at.finish(part)
            return []
        found = await self._page(new, replace(part, offset=part.offset + len(new), last=digest(new[-1])))
        if self._at.part.satisfied:
            self._at.finish(self._at.part)
        return found

    async def _constructed(self) -> list[Finding]:
        part = self._at.part
        query = queries.constructed(part.scope, self._state.page, part.offset, order=part.order)
        quads = await self._conversation.construct(query)
        if not quads:
            self._at.finish(part)
            return []
        if any(_has_blank(quad) for quad in quads):
            self._state.relabelled = True
        return self._kept(quads, replace(part, offset=part.offset + len(quads)))

    def _kept(self, quads: list[Quad], part: Part) -> list[Finding]:
        """Keeps triples, and the part's new position."""
        self._at.count(len(quads), part)
        graph = Page(part.scope).graph
        if isinstance(graph, NamedNode):
            quads = [Quad(quad.subject, quad.predicate, quad.object, graph) for quad in quads]
        return [Quads(quads)]

    async def _page(
        self, rows: list[Row], part: Part, *, safe: bool = False, unsound: int = 0
    ) -> list[Finding]:
        """Keeps the rows and the part's new position; unless they show that labels do not hold."""
        state = self._state
        if state.labels == "unknown" and any(cell.type == "bnode" for row in rows for cell in row.values()):
            state.labels = "stable" if await labels_hold(self._conversation) else "unstable"
            if not self._at.stable and not safe and self._at.reopen_graph():
                return []
        page = Page(part.scope, "" if self._at.stable else f"p{state.pages}x")
        page.take(rows)
        self._at.count(len(rows), part)
        state.unreadable += page.unreadable + unsound
        found: list[Finding] = [Quads(page.quads)] if page.quads else []
        if page.unreadable:
            found.append(Problem(f"{page.unreadable} rows of an answer are no RDF: {page.example}"))
        if unsound:
            found.append(Problem(f"{unsound} names of the endpoint are no IRIs, and cannot be asked for"))
        return found

    async def _uncut(self, rows: int, limit: int, probe: str) -> bool:
        """Whether so many rows are all there are; `probe` asks for one more, which is right in any order."""
        if rows >= limit:
            return False
        if rows > self._state.most:
            if await self._conversation.select(probe):
                self._at.cap(rows)
                return False
            self._state.most = rows
        return True


def _has_blank(quad: Quad) -> bool:
    return type(quad.object) is BlankNode or type(quad.subject) is BlankNode


def _number(row: Row) -> int | None:
    """The count in a row; None without one."""
    try:
        return int(row["n"].text)
    except (KeyError, ValueError):
        return None
