"""The frontier: what waits, where, for what, and who is left in peace."""

from starlette.requests import Request

from tamias.features.pages.crawl import activity
from tamias.features.pages.html.page import page, table_of
from tamias.features.pages.queries import Record, records, records_of_buckets
from tamias.features.service.api.tags import count_tags
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service

MOST_QUEUES = 100
MOST_BLOCKS = 100
MOST_TAGS = 50
_SECONDS = 3.0


@page(
    "/frontier",
    "frontier.html",
    table=table_of("queues", "host", "crawl", "known", "open", "state", "ready_at", "delay_seconds", "tags"),
)
async def frontier(_: Request, service: Service) -> Record:
    """The frontier as it was a moment ago."""
    return await service.lately("frontier", _SECONDS, _frontier)


def _frontier(db: ServiceSession) -> Record:
    now = db.session.now()
    queues = records_of_buckets(db, "queues", now=now, limit=MOST_QUEUES)
    return {
        "waiting": activity.waiting(db),
        "crawls": activity.crawl_sums(db),
        "queues": sorted(queues, key=lambda each: -each["open"])[:MOST_QUEUES],
        "blocks": list(records_of_buckets(db, "blocks", now=now, limit=MOST_BLOCKS)),
        "lists": records(db, "lists"),
        "tags": count_tags(db)[:MOST_TAGS],
        "troubles": activity.troubles(db),
    }
