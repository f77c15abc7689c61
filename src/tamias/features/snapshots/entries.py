"""The description of a snapshot and of each version and graph in it: values, and lines of JSON. Pure."""

from collections.abc import Iterable, Iterator

import msgspec

LAYOUT = 1
"""Of the files of an export. A later layout has another number; a snapshot keeps the one it was made with."""


class SnapshotGap(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reason why something that a snapshot names is not in its export."""

    reason: str
    at: str | None = None
    """Since when, where that is known."""
    damaged: bool = False
    """Whether it is there, but cannot be read."""


class VersionEntry(msgspec.Struct, frozen=True, kw_only=True, tag="version", tag_field="kind"):
    """A version as it was described when the snapshot was made."""

    id: str
    url: str
    title: str | None
    captured_at: str
    sha256: str
    byte_size: int
    media_type: str | None
    capture: str
    portals: tuple[str, ...]
    path: str
    """Of its file in an export."""
    gap: SnapshotGap | msgspec.UnsetType = msgspec.UNSET


class GraphEntry(msgspec.Struct, frozen=True, kw_only=True, tag="graph", tag_field="kind"):
    """The statements of a document, wherever they are in the export."""

    document: str
    read_at: str
    capture: str
    sha256: str
    """Of its statements as sorted lines of N-Quads, each once."""
    byte_size: int
    """Of these lines."""
    statements: int
    gap: SnapshotGap | msgspec.UnsetType = msgspec.UNSET


ManifestEntry = VersionEntry | GraphEntry
_DECODER = msgspec.json.Decoder(ManifestEntry)


def entry_line(entry: ManifestEntry) -> bytes:
    """An entry as a line of a manifest. Lines in the order of their bytes are the manifest."""
    return msgspec.json.encode(entry) + b"\n"


def read_entries(lines: Iterable[bytes]) -> Iterator[ManifestEntry]:
    """Lines as entries."""
    return map(_DECODER.decode, lines)


class SnapshotAbout(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot as a whole. Nothing in it tells when it was made or exported."""

    name: str
    at: str
    title: str
    description: str
    creators: tuple[str, ...]
    publisher: str
    doi: str | None = None
    licence: str | None = None
    """Of the snapshot as a compilation; what is in it has its own."""
    urls: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    portals: tuple[str, ...] = ()
    """What was chosen; without any of the three, everything."""
    latest: bool = False
    """Whether only the version of each resource is in it that was current."""
    reserved: bool = False
    """Whether content is in it whose servers reserve its use."""
    left_out: dict[str, int] = {}
    """How much was left out for that, by reason."""
    resources: int = 0
    versions: int = 0
    version_bytes: int = 0
    graphs: int = 0
    statements: int = 0
    """The sum over the graphs."""
    manifest: str = ""
    """SHA-256 of the manifest without gaps: what to cite."""
    provenance: str = ""
    """SHA-256 of the provenance."""
    software: str = ""
    layout: int = LAYOUT
