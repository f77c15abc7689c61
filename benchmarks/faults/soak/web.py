"""Pages that change at times of their own, never back to what they were: each state is a version."""

import time
from hashlib import sha256
from random import Random

import msgspec

from benchmarks.webs.sites import NOTHING, ROBOTS, SiteAnswer
from benchmarks.webs.wire import WireRequest

SHORTEST, LONGEST = 40.0, 240.0
"""Seconds between two changes of a page."""
_TEXT_BYTES = 1500


class Showing(msgspec.Struct, frozen=True):
    """That a state of a page was asked for with its ETag: the archive says that it has it."""

    url: str
    sha256: str


class ChangingWeb:
    """The site on all hosts. It can be made to stand still, so that a crawler can catch up."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._begun = time.monotonic()
        self._still_at: float | None = None
        self.shown: set[Showing] = set()
        self.given: dict[str, dict[str, int]] = {}
        """How often each state of each page was sent, by address and digest."""

    def stand_still(self) -> None:
        """Nothing changes from now on."""
        self._still_at = time.monotonic()

    def state(self, host: str, path: str) -> int:
        """How often the page has changed by now."""
        chance = Random(f"{self._seed}/{host}{path}")
        period = chance.uniform(SHORTEST, LONGEST)
        passed = (self._still_at or time.monotonic()) - self._begun
        return int((passed + chance.uniform(0, period)) / period)

    def body(self, host: str, path: str) -> bytes:
        """What the page says now: Turtle like no other."""
        state = self.state(host, path)
        text = Random(f"{self._seed}/{host}{path}/{state}").randbytes(_TEXT_BYTES // 2).hex()
        return f'<> <#state> {state} ; <#text> "{text}" .\n'.encode()

    def answer(self, asked: WireRequest) -> SiteAnswer:
        """A page, or that it is still the same."""
        if asked.path == ROBOTS:
            return NOTHING
        body = self.body(asked.host, asked.path)
        digest = sha256(body).hexdigest()
        url = f"http://{asked.headers['host']}{asked.target}"
        shown = asked.headers.get("if-none-match", "").strip('"')
        if shown:
            self.shown.add(Showing(url, shown))
        headers = (("Content-Type", "text/turtle"), ("ETag", f'"{digest}"'))
        if shown == digest:
            return SiteAnswer(status=304, headers=headers)
        states = self.given.setdefault(url, {})
        states[digest] = states.get(digest, 0) + 1
        return SiteAnswer(body=body, headers=headers)
