"""URLs that were forgotten and are not fetched again, in the memory of whoever admits URLs."""

import time

import msgspec

from tamias.archive.forgetting.tombstones import blocked_bodies, blocked_urls, blocks_mark
from tamias.database.connect import Session
from tamias.model.capture import Capture, Outcome
from tamias.model.url import key_of_fetched, url_key

REFRESH_SECONDS = 2.0


class ForgottenUrls:
    """Knows them as of the last refresh; before the first, none. For one thread at a time."""

    def __init__(self, session_names: frozenset[str]) -> None:
        self._session_names = session_names
        self._reasons: dict[str, str] = {}
        self._bodies: dict[tuple[str, str], str] = {}
        self._mark: tuple[int, ...] = (0, 0, 0)
        self._read_at = float("-inf")

    def refresh(self, session: Session, *, now: bool = False) -> None:
        """Reads them again, if some seconds have passed or `now`, and if they are others."""
        if not now and time.monotonic() - self._read_at < REFRESH_SECONDS:
            return
        self._read_at = time.monotonic()
        mark = blocks_mark(session)
        if mark != self._mark:
            found, bodies = blocked_urls(session), blocked_bodies(session)
            self._reasons = {self._key(url): reason for url, reason in found.items()}
            self._bodies = {(self._key(url), sha256): reason for (url, sha256), reason in bodies.items()}
            self._mark = mark

    def refuse(self, url: str) -> str | None:
        """When and why a URL was forgotten."""
        if not self._reasons:
            return None
        return self._reasons.get(key_of_fetched(url, self._session_names))

    def refuse_body(self, url: str, sha256: str) -> str | None:
        """When and why a body was forgotten that a URL gives again."""
        if not self._bodies:
            return None
        return self._bodies.get((key_of_fetched(url, self._session_names), sha256))

    def without_body(self, capture: Capture) -> Capture:
        """What came, refused and without its body if that was forgotten for its URL."""
        body = capture.body
        if body is None:
            return capture
        found = (self.refuse_body(url, body.sha256) for url in (capture.url, capture.final_url))
        reason = next((each for each in found if each), None)
        if reason is None:
            return capture
        return msgspec.structs.replace(capture, outcome=Outcome.REFUSED, reason=reason, body=None)

    def _key(self, url: str) -> str:
        return url_key(url, self._session_names)
