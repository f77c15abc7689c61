"""Where a copy stands: the stack of parts, and what is at hand of each while the process lives."""

from collections import deque
from collections.abc import Collection
from typing import NamedTuple

from msgspec.structs import replace

from tamias.doors.sparql.conversation import Trouble
from tamias.doors.sparql.limits import Limits
from tamias.doors.sparql.parts import Part, following, inside, opened
from tamias.doors.sparql.scope import Span
from tamias.doors.sparql.spans import Cuts
from tamias.doors.sparql.state import State
from tamias.doors.sparql.terms import writable

MOST_SPLITS = 60
_PATIENCE = 5
"""Good pages before they are made larger."""


class Key(NamedTuple):
    """An IRI of a listing, with the number of its statements where that was counted."""

    name: str
    statements: int | None


class Standing:
    """Moves through the parts; asks nobody."""

    def __init__(self, state: State, limits: Limits) -> None:
        self.state = state
        self._limits = limits
        self._listed: dict[int, deque[Key]] = {}
        self._found: dict[int, int] = {}
        self._cuts: dict[int, Cuts] = {}
        self._splits = 0
        self._good = 0

    @property
    def part(self) -> Part:
        """The part at work."""
        return self.state.stack[-1]

    @part.setter
    def part(self, part: Part) -> None:
        self.state.stack[-1] = part

    @property
    def stable(self) -> bool:
        """Whether blank nodes keep their labels, as far as is known."""
        return self.state.labels != "unstable"

    @property
    def listed(self) -> deque[Key] | None:
        """The keys of the part's span that are still to come; None before they are listed."""
        return self._listed.get(self._depth)

    def list(self, keys: Collection[Key], limit: int) -> None:
        """Takes a complete listing of the span; what is done already is passed over."""
        part = self.part
        self._splits = 0
        self._found[self._depth] = len(keys)
        left = (key for key in keys if part.done is None or key.name > part.done)
        self._listed[self._depth] = deque(sorted(left, key=lambda key: key.name))
        self.part = replace(part, room=limit)

    def drop(self, keys: int) -> None:
        """So many of the listed keys are done."""
        listed = self._listed[self._depth]
        for _ in range(keys):
            listed.popleft()

    def unlist(self) -> None:
        """Forgets the listing; the span is listed again."""
        del self._listed[self._depth]

    def open(self) -> None:
        """Begins the part anew as one that is larger than a page."""
        self.part = opened(self.part, stable=self.stable)

    def enter(self, key: Key) -> None:
        """Goes into one key of the listing, as a part of its own."""
        part = self.part
        if not writable(key.name):
            self.state.unreadable += key.statements or 1
            self.part = replace(part, done=key.name)
            return
        self.state.graphs += part.key == "g"
        self.state.stack.append(inside(part, key.name, key.statements, stable=self.stable))

    def descend(self) -> bool:
        """Goes into the next of the listed keys, if any are listed."""
        if self.part.way != "keys" or not self.listed:
            return False
        self.enter(self.listed.popleft())
        return True

    def change(self, part: Part) -> None:
        """Takes up the same part in another way; what was copied in the way so far does not count."""
        self._uncount(self.part.copied - part.copied, self.part)
        self._forget()
        self.part = part

    def finish(self, part: Part) -> None:
        """Goes on to the next way of the same statements; leaves the part when nothing is left."""
        self._forget()
        more = None if part.satisfied else following(part)
        self.part = more or part
        if more is None:
            self.leave()

    def leave(self) -> None:
        """Ends the part, whether all of it came or not."""
        self._forget()
        done = self.state.stack.pop()
        if self.state.stack:
            around = self.part
            name = done.name if around.way == "keys" else around.done
            self.part = replace(around, copied=around.copied + done.copied, done=name)

    def reopen_graph(self) -> bool:
        """Begins the graph at work anew, for its blank nodes' sake; false when no one graph is at work."""
        for depth, part in enumerate(self.state.stack, 1):
            if part.key != "g" and not part.scope.nameless_graphs:
                self._uncount(sum(each.copied for each in self.state.stack[depth - 1 :]), part)
                while self._depth > depth:
                    self._forget()
                    self.state.stack.pop()
                self._forget()
                self.part = opened(part, stable=False)
                return True
        return False

    def split(self, keys: Collection[str], total: int | None) -> None:
        """Takes a smaller span, after one that did not fit. Raises `Trouble` when that leads nowhere."""
        self._splits += 1
        if self._splits > MOST_SPLITS or not keys:
            raise Trouble("the order of strings does not hold", lasting=True)
        part = self.part
        if part.done is not None:
            # What is done of the old span cannot be told from the new one in an order that is not ours.
            self._uncount(part.copied - part.start, part)
            part = replace(part, copied=part.start, done=None, room=0)
        cuts = self._cuts.setdefault(self._depth, Cuts())
        upto = cuts.split(keys, part.span.upto, self.state.page, total)
        self.part = replace(part, span=Span(after=part.span.after, upto=upto))

    def next_span(self) -> None:
        """All listed keys are done: goes to the next span, or ends this way."""
        part = self.part
        self.unlist()
        found = self._found.pop(self._depth, 0)
        if part.span.upto is None or part.satisfied:
            self.finish(part)
        else:
            self.part = self.past_span(part, found)

    def past_span(self, part: Part, found: int) -> Part:
        """The part at the beginning of the span after one that held so many keys; the same after the last."""
        if part.span.upto is None:
            return part
        self._splits = 0
        cuts = self._cuts.get(self._depth)
        span = Span(after=part.span.upto, upto=cuts.after(found, self.state.page) if cuts else None)
        return replace(part, span=span, done=None, room=0, start=part.copied)

    def count(self, rows: int, part: Part) -> None:
        """A page came, after which the part is this one; now and then the pages grow."""
        state = self.state
        self.part = replace(part, copied=part.copied + rows)
        state.pages += 1
        state.statements += rows
        state.named += rows if part.scope.named else 0
        self._good += 1
        if self._good % _PATIENCE == 0:
            most = min(self._limits.page, state.cap or self._limits.page)
            state.page = max(state.page, min(most, state.page * 3 // 2))

    def cap(self, rows: int) -> None:
        """The server gives no more than so many rows at once."""
        self.state.cap = rows
        self.state.most = min(self.state.most, rows)
        self.state.page = max(2, min(self.state.page, rows))

    @property
    def _depth(self) -> int:
        return len(self.state.stack)

    def _forget(self) -> None:
        self._splits = 0
        self._listed.pop(self._depth, None)
        self._found.pop(self._depth, None)
        self._cuts.pop(self._depth, None)

    def _uncount(self, rows: int, part: Part) -> None:
        self.state.statements -= rows
        self.state.named -= rows if part.scope.named else 0
