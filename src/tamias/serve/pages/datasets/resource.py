"""The resource that the address of a page names."""

import re

from tamias.archive.reader.library import NotArchived
from tamias.archive.versions.resources import read_resources
from tamias.model.resource import Resource
from tamias.serve.queries.thread_pool import ServiceSession

_ID = re.compile(r"[0-9a-f]{24}")


def resource_named(db: ServiceSession, named: str) -> Resource:
    """A resource by its id. Raises `NotArchived`."""
    found = read_resources(db.session, [named]) if _ID.fullmatch(named) else []
    if not found:
        raise NotArchived(f"{named[:100]} is not in the archive")
    return found[0]
