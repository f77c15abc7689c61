"""Known URLs as a strategy is asked about them: a sample of them, or one that a person names."""

from functools import partial

from tamias.crawl.plan.admit import Admission
from tamias.crawl.strategy.links import read_links
from tamias.crawl.strategy.rescoring import sample
from tamias.crawl.strategy.scoring import Asked, Seen
from tamias.database.connect import Cursor, Session
from tamias.frontier.due.rescore import FIRST_PLACE, place_of, read_unvisited
from tamias.model.url import fetch_url
from tamias.settings import Settings

SAMPLE = 1000


def sample_of(session: Session, crawl: int) -> list[Asked]:
    """Some unvisited URLs of a crawl with their links."""
    now = session.now()
    found: list[Asked] = []
    for bucket in range(_buckets(session)):
        found += session.transact(partial(_some, crawl, bucket, SAMPLE - len(found), now))
        if len(found) >= SAMPLE:
            break
    return found


def described(
    session: Session, settings: Settings, url: str, crawl: int, depth: int, link: Seen | None
) -> Asked:
    """One URL with the given link, or those that are kept of it. Raises `UrlError` if it is not a URL."""
    item = Admission(settings, ()).item(fetch_url(url), depth, crawl)
    bucket, place = place_of(item.host, item.crawl, item.key, _buckets(session))
    links = [link] if link else session.transact(lambda cursor: read_links(cursor, bucket, [place]))[0]
    return Asked(url=item.url, host=item.host, depth=depth, crawl=item.crawl, links=links)


def _some(crawl: int, bucket: int, most: int, now: int, cursor: Cursor) -> list[Asked]:
    found, _ = read_unvisited(cursor, bucket, FIRST_PLACE, now, of_crawl=crawl, most=most)
    return sample(cursor, bucket, found)


def _buckets(session: Session) -> int:
    row = session.transact(lambda cursor: cursor.execute("SELECT buckets FROM meta").fetchone())
    assert row is not None
    return int(row[0])
