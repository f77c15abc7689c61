"""Compare versions of a resource for a client."""

import asyncio
import tempfile
from pathlib import Path
from typing import Final

from tamias.archive.reader.content import Content
from tamias.content.formats import type_with_charset
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.model.diff import Diff, DiffLimits
from tamias.model.resource import Resource, Version
from tamias.plugins import load

COMPARED_AT_ONCE: Final = 256 << 10
"""Bytes of versions that are compared for a page or a feed; larger ones are compared on request."""
LARGEST: Final = 64 << 20
"""Bytes of a version that is compared here; `tamias diff` takes any."""
turns = asyncio.Semaphore(2)
"""Comparing takes long: most sessions are left to those who only read."""


LIMITS: Final = DiffLimits(read_bytes=LARGEST, held_bytes=16 << 20, unpacked_bytes=LARGEST)


def compare(
    db: ServiceSession, resource: Resource, old: Version, new: Version, limits: DiffLimits = LIMITS
) -> Diff:
    """Return what changed from one version to another. Raises `HttpProblem` where one is too large."""
    if max(old.byte_size, new.byte_size) > limits.read_bytes:
        detail = f"versions over {limits.read_bytes} bytes are not compared here; 'tamias diff' compares any"
        raise HttpProblem(422, detail)
    with tempfile.TemporaryDirectory(prefix="tamias-diff-") as folder:
        was, now = (Content(resource, each, db.reader).spooled(Path(folder)) for each in (old, new))
        types = [type_with_charset(each.media_type, each.declared_type) for each in (old, new)]
        found: Diff = load("comparisons", "diff")(
            was, now, types[1], old_type=types[0], limits=limits, base=resource.url
        )
        return found
