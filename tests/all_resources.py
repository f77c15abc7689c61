"""Every resource of an archive."""

from collections.abc import Iterator

from tamias.archive.versions.resources import page_of_resources
from tamias.database.connect import Session
from tamias.model.resource import Resource


def all_resources(session: Session) -> Iterator[Resource]:
    """Yield every resource, page by page."""
    after = ""
    while page := page_of_resources(session, after):
        yield from page
        after = page[-1].id
