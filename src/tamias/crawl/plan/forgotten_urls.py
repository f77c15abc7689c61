"""URLs that were forgotten and are not fetched again, in the memory of whoever admits URLs."""

import time
from hashlib import sha256

import msgspec

from tamias.archive.forgetting.tombstones import blocked_bodies, blocked_urls, blocks_mark, is_record
from tamias.database.connect import Session
from tamias.model.capture import Capture, Outcome
from tamias.model.finding import SourceRecord
from tamias.model.url import key_of_fetched, url_key

REFRESH_SECONDS = 2.0


class ForgottenUrls:
    """Knows them as of the last refresh; before the first, none. For one thread at a time."""

    def __init__(self, session_names: frozenset[str]) -> None:
        self._session_names = session_names
        self._reasons: dict[str, str] = {}
        self._records: dict[str, str] = {}
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
            self._records = {url: reason for url, reason in found.items() if is_record(url)}
            self._reasons = {self._key(url): reason for url, reason in found.items() if not is_record(url)}
            self._bodies = {
                (url if is_record(url) else self._key(url), digest): reason
                for (url, digest), reason in bodies.items()
            }
            self._mark = mark

    def refuse(self, url: str) -> str | None:
        """When and why a URL was forgotten."""
        if not self._reasons:
            return None
        return self._reasons.get(key_of_fetched(url, self._session_names))

    def refuse_record(self, record: SourceRecord) -> str | None:
        """When and why the record of a catalogue was forgotten, as a whole or as it is."""
        if not self._records and not self._bodies:
            return None
        body = record.iri, sha256(record.body).hexdigest()
        return self._records.get(record.iri) or self._bodies.get(body)

    def refuse_body(self, url: str, digest: str) -> str | None:
        """When and why a body was forgotten that a URL gives again."""
        if not self._bodies:
            return None
        return self._bodies.get((key_of_fetched(url, self._session_names), digest))

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
