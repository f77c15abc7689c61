"""What a supervisor does beside: takes what people inserted, and scores known URLs anew."""

import time
from collections.abc import Sequence

from tamias.crawl.plan.admit import Admission
from tamias.crawl.strategy.inbox import empty_inbox
from tamias.crawl.strategy.rescoring import Rescoring
from tamias.database.connect import Session
from tamias.frontier.postgres import PostgresFrontier
from tamias.frontier.service.state import WATCH
from tamias.settings import Settings

MOST_SECONDS = 0.25
"""At one time: others wait for the same session."""


class Tending:
    """Called again and again, in the database's thread."""

    def __init__(
        self, session: Session, frontier: PostgresFrontier, settings: Settings, seeds: Sequence[str]
    ) -> None:
        """`seeds` as far as the scope needs them."""
        self._session = session
        self._frontier = frontier
        self._admission = Admission(settings, seeds)
        self._rescoring = Rescoring(session, frontier, settings.strategy, not_of=[WATCH])

    def step(self) -> None:
        """Does some of what is to do."""
        empty_inbox(self._session, self._frontier, self._admission)
        end = time.monotonic() + MOST_SECONDS
        while self._rescoring.step() and time.monotonic() < end:
            pass
