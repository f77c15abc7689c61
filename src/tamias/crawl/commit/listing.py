"""Bounds what the sitemaps of a host add to a crawl: so many files, so many URLs; known ones do not count."""

from collections.abc import Callable

from tamias.archive.sources.sites import ListedBy, count_listed, listed_so_far
from tamias.crawl.plan.admit import Admission, Reference
from tamias.database.connect import Session
from tamias.frontier.keys import bucket_of, host_hash
from tamias.model.cut import LISTED
from tamias.model.item import Item
from tamias.model.kind import SITEMAP
from tamias.model.url import authority
from tamias.settings import SeedsSettings

BATCH = 1000


class SitemapPuts:
    """Puts the addresses of sitemaps. For the database's thread."""

    def __init__(self, session: Session, admission: Admission, buckets: int, settings: SeedsSettings) -> None:
        self._session = session
        self._admission = admission
        self._buckets = buckets
        self._settings = settings

    def put(self, reference: Reference, items: list[Item], put: Callable[[list[Item]], int]) -> int:
        """Puts items until the bound is met; `put` tells how many were new. Returns what was cut."""
        place = self._place(reference)
        sitemaps, urls = listed_so_far(self._session, place)
        files = reference.kind == SITEMAP
        room = self._settings.host_sitemaps - sitemaps if files else self._settings.host_sitemap_urls - urls
        new = 0
        while items and new < room:
            size = min(BATCH, room - new)
            new += put(items[:size])
            items = items[size:]
        if new:
            count_listed(self._session, place, new if files else 0, 0 if files else new)
        return LISTED if items else 0

    def _place(self, reference: Reference) -> ListedBy:
        qid = host_hash(self._admission.queue(reference.base))
        return ListedBy(bucket_of(qid, self._buckets), qid, reference.crawl, authority(reference.base))
