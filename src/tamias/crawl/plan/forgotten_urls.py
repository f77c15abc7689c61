"""URLs that were forgotten and are not fetched again, in the memory of whoever admits URLs."""

import time
from collections.abc import Iterable, Mapping
from hashlib import blake2b, sha256
from typing import TYPE_CHECKING

import msgspec

from tamias.model.capture import Capture, Outcome
from tamias.model.finding import SourceRecord
from tamias.model.url import host_key, key_of_fetched, url_key

if TYPE_CHECKING:
    from tamias.database.connect import Session

REFRESH_SECONDS = 2.0
MOST_LEARNT = 100_000


class ForgottenUrls:
    """Knows them as of the last refresh; before the first, none. For one thread at a time."""

    def __init__(self, session_names: frozenset[str]) -> None:
        self._session_names = session_names
        self._reasons: dict[str, str] = {}
        self._records: dict[str, str] = {}
        self._bodies: dict[tuple[str, str], str] = {}
        self._of_domain: dict[str, dict[bytes, str]] = {}
        self._learnt: dict[bytes, str] = {}
        self._mark: tuple[int, ...] = (0, 0, 0)
        self._read_at = float("-inf")

    def __bool__(self) -> bool:
        return bool(self._reasons or self._learnt)

    @property
    def is_stale(self) -> bool:
        """Return whether it is time to read them again."""
        return time.monotonic() - self._read_at >= REFRESH_SECONDS

    def refresh(self, session: "Session", *, now: bool = False) -> None:
        """Read them again, if some seconds have passed or `now`, and if they are others."""
        if not now and not self.is_stale:
            return
        from tamias.archive.tombstones import (
            blocked_bodies,
            blocked_urls,
            blocks_mark,
            is_record,
        )

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
            self._of_domain = {}
            for key, reason in self._reasons.items():
                self._of_domain.setdefault(host_key(key), {})[_digest(key)] = reason
            self._mark = mark

    def refuse(self, url: str) -> str | None:
        """Return when and why a URL was forgotten."""
        if not (self._reasons or self._learnt):
            return None
        key = key_of_fetched(url, self._session_names)
        return self._reasons.get(key) or (self._learnt.get(_digest(key)) if self._learnt else None)

    def near(self, urls: Iterable[str]) -> dict[bytes, str]:
        """Digests and reasons of those in the domains of some URLs, for a worker that cannot read them."""
        if not self._of_domain:
            return {}
        domains = {host_key(url) for url in urls}
        return {key: why for each in domains for key, why in self._of_domain.get(each, {}).items()}

    def learn(self, reasons: Mapping[bytes, str]) -> None:
        """Add the reasons that a process with access to the database has sent."""
        if len(self._learnt) > MOST_LEARNT:
            self._learnt.clear()
        self._learnt.update(reasons)

    def refuse_record(self, record: SourceRecord) -> str | None:
        """Return when and why the record of a catalogue was forgotten, as a whole or as it is."""
        if not self._records and not self._bodies:
            return None
        body = record.iri, sha256(record.body).hexdigest()
        return self._records.get(record.iri) or self._bodies.get(body)

    def refuse_body(self, url: str, digest: str) -> str | None:
        """Return when and why a body was forgotten that a URL gives again."""
        if not self._bodies:
            return None
        return self._bodies.get((key_of_fetched(url, self._session_names), digest))

    def without_body(self, capture: Capture) -> Capture:
        """Return what came, refused and without its body if that was forgotten for its URL."""
        body = capture.body
        if body is None or not self._bodies:
            return capture
        at = self.refuse_body(capture.url, body.sha256)
        reason = at or self.refuse_body(capture.final_url, body.sha256)
        if reason is None:
            return capture
        return msgspec.structs.replace(capture, outcome=Outcome.REFUSED, reason=reason, body=None)

    def _key(self, url: str) -> str:
        return url_key(url, self._session_names)


def _digest(key: str) -> bytes:
    return blake2b(key.encode("utf-8", "replace"), digest_size=16).digest()
