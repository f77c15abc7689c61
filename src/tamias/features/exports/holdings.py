"""The content of the archive, resource by resource, for packages."""

from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from tamias.archive.captures import named_captures
from tamias.archive.reader.library import ArchiveReader, NotArchived
from tamias.archive.versions.resources import read_versions
from tamias.content.formats import suffix_of
from tamias.features.exports.usage_gate import UsageGate
from tamias.model.capture import CaptureRecord
from tamias.model.resource import Resource, Version

AT_ONCE = 200
"""Resources that are looked up together."""


class Holding(msgspec.Struct, frozen=True):
    """A resource with its versions, and the attempts that brought them."""

    resource: Resource
    versions: Sequence[Version]
    exchanges: dict[str, CaptureRecord]
    """By the id of the capture: those that are still known, and perhaps some of other resources."""

    @property
    def title(self) -> str:
        """Return a name for people."""
        return self.resource.title or self.resource.url

    def path(self, version: Version) -> str:
        """Return the path of a version in a package; nothing from outside is in it."""
        return f"{self.resource.id}/{version.number}{suffix_of(version.media_type) or '.bin'}"


def holdings(archive: ArchiveReader, urls: Sequence[str], gate: UsageGate) -> Iterator[Holding]:
    """The resources named, or all, with the versions that the gate lets through; those that have one.

    Raises `NotArchived` for a name without one.
    """
    named = {each.id: each for each in map(archive.resource, urls)}
    chosen = iter(named.values()) if urls else archive.resources()
    while some := list(islice(chosen, AT_ONCE)):
        versions = read_versions(archive.session, [resource.id for resource in some])
        captures = [version.capture for of_one in versions.values() for version in of_one]
        exchanges = {each.id: each for each in named_captures(archive.session, captures)}
        for resource in some:
            if open_ones := [each for each in versions[resource.id] if gate.passes(each.capture)]:
                yield Holding(resource, open_ones, exchanges)
            elif urls and not versions[resource.id]:
                raise NotArchived(f"{resource.url} is watched, but has no version yet")
