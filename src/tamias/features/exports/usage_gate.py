"""The gate of all exports: it leaves out what servers reserve, and what is closed to the public."""

from collections.abc import Sequence

import msgspec

from tamias.archive.captures import captures_of_crawl
from tamias.archive.closed import CLOSED, closing_rules
from tamias.database.connect import Session
from tamias.database.sql import statements
from tamias.model.site import Signal
from tamias.model.usage import refusal, verdict

_SQL = statements("tamias.archive", "captures.sql")


class UsageGate:
    """Knows the captures that are withheld from a use, and counts what was left out for them."""

    def __init__(
        self, session: Session, words: tuple[str, ...], crawl: int | None = None, closed: Sequence[str] = ()
    ) -> None:
        """`words` of the verdict withhold (`model.usage`), and rules; without words nothing is withheld.

        Only one crawl passes.
        """
        self._session = session
        self._crawl = None if crawl is None else captures_of_crawl(session, crawl)
        self._captures: dict[str, str] = {}
        self._bodies: set[tuple[str, str]] = set()
        self.left_out: dict[str, int] = {}
        """How much was left out, by reason."""
        self._rules = closing_rules(tuple(closed) if words else ())
        values = {"closed": self._rules.patterns}
        for row in session.rows(_SQL["signals"].text, values) if words else ():
            capture, url, sha256, signals, requested, at = row
            is_closed = self._rules.closes(url, at) or self._rules.closes(requested, at)
            said = verdict(msgspec.convert(signals, tuple[Signal, ...]))
            reason = CLOSED if is_closed else refusal(said, words)
            if reason is not None:
                self._captures[capture] = reason
                self._bodies.add((url, sha256))

    def passes(self, capture: str) -> bool:
        """Return whether what a capture brought may be exported; if not, it is counted."""
        if self._crawl is not None and capture not in self._crawl:
            return False
        reason = self._captures.get(capture)
        if reason is not None:
            self.left_out[reason] = self.left_out.get(reason, 0) + 1
        return reason is None

    def signals(self, capture: str) -> tuple[Signal, ...]:
        """Return what was said with one capture."""
        values = {"capture": capture}
        rows = self._session.transact(
            lambda cursor: cursor.execute(_SQL["signals_of"].text, values).fetchall()
        )
        return msgspec.convert(rows[0][0], tuple[Signal, ...]) if rows else ()

    @property
    def is_open(self) -> bool:
        """Return whether nothing at all is withheld."""
        return not (self._captures or self._rules)

    def holds(self, url: str, sha256: str) -> bool:
        """Return whether a body that came from an address is withheld, where its capture is not known."""
        return (url, sha256) in self._bodies or self._rules.closes(url, None)
