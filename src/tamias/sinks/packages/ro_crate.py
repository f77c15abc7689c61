"""RO-Crate 1.2: files with one JSON-LD document that says what they are and where they came from."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from tamias.sinks.packages.package import Package, Packed

CONTEXT = "https://w3id.org/ro/crate/1.2/context"
PROFILE = "https://w3id.org/ro/crate/1.2"
METADATA = "ro-crate-metadata.json"

Entity = dict[str, Any]


class Crate:
    """Writes one crate: its files, and at the end what is said of them."""

    def __init__(self, package: Package) -> None:
        self._package = package
        self._entities: list[Entity] = []
        self._parts: dict[str, None] = {}

    def add_file(self, path: str, content: Iterable[bytes], /, **told: Any) -> Packed:
        """A file and what is known of it."""
        packed = self._package.add(path, content)
        self.describe(path, "File", contentSize=str(packed.size), sha256=packed.sha256, **told)
        self._parts[path] = None
        return packed

    def add_folder(self, path: str, files: Iterable[str], /, **told: Any) -> None:
        """A folder as a dataset of its own; `path` ends in a slash."""
        inside = list(files)
        self.describe(path, "Dataset", hasPart=references(inside), **told)
        for part in inside:
            self._parts.pop(part, None)
        self._parts[path] = None

    def describe(self, identifier: str, kind: str, /, **told: Any) -> None:
        """Anything else that is to be said; what is None is not."""
        known = {word: value for word, value in told.items() if value is not None and value != []}
        self._entities.append({"@id": identifier, "@type": kind, **known})

    def complete(self, *, name: str, description: str, licence: Mapping[str, str]) -> None:
        """Writes the metadata. `licence` has `@id`, `name` and `description`."""
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        root = {
            "@id": "./",
            "@type": "Dataset",
            "name": name,
            "description": description,
            "datePublished": now,
            "license": {"@id": licence["@id"]},
            "hasPart": references(self._parts),
        }
        descriptor = {
            "@id": METADATA,
            "@type": "CreativeWork",
            "about": {"@id": "./"},
            "conformsTo": {"@id": PROFILE},
        }
        terms = {"@type": "CreativeWork", **licence}
        graph = {"@context": CONTEXT, "@graph": [descriptor, root, terms, *self._entities]}
        self._package.add(METADATA, [msgspec.json.format(msgspec.json.encode(graph), indent=2)])


def references(names: Iterable[str]) -> list[Entity]:
    """Entities as values of a property."""
    return [{"@id": name} for name in names]
