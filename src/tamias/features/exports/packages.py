"""Folders and zip files of an archive's content, as BagIt and RO-Crate describe them.

A package goes into a folder, or into a zip file that may be a pipe.
"""

import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from textwrap import wrap
from typing import Any, BinaryIO

import msgspec

from tamias.cli.console.output import to_folder, to_output
from tamias.database.disk import write_hashed
from tamias.model.errors import TamiasError, UsageError


class Packed(msgspec.Struct, frozen=True):
    """A file of a package."""

    path: str
    size: int
    sha256: str


class FolderPackage:
    """Files of a new folder. Raises `UsageError` where something is in its place."""

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            raise UsageError(f"{folder} already exists; name a new folder") from None
        self._folder = folder

    def add(self, path: str, content: Iterable[bytes]) -> Packed:
        """Writes a file. The path is one of ours, relative, and new. Raises `OSError`."""
        place = self._folder.joinpath(*_checked(path).parts)
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("xb") as file:
            return Packed(path, *write_hashed(content, file.write))


class ZipPackage:
    """Files in a zip, all below one folder if a name for it is given."""

    def __init__(self, zipped: zipfile.ZipFile, folder: str = "", at: datetime | None = None) -> None:
        """Write to a zip; with a time `at`, files have that time and are not compressed.

        So the same files always give the same bytes: two versions of zlib need not compress alike.
        """
        self._zip = zipped
        self._folder = f"{folder}/" if folder else ""
        self._at = at

    def add(self, path: str, content: Iterable[bytes], *, stored: bool = False) -> Packed:
        """Write a file; compress it unless it is to be `stored` as it is."""
        when = self._at or datetime.now(UTC)
        entry = zipfile.ZipInfo(f"{self._folder}{_checked(path)}", when.timetuple()[:6])
        entry.create_system = 3  # Unix, on every system
        entry.compress_type = zipfile.ZIP_STORED if self._at or stored else zipfile.ZIP_DEFLATED
        entry.external_attr = 0o644 << 16
        with self._zip.open(entry, "w", force_zip64=True) as file:
            return Packed(path, *write_hashed(content, file.write))


Package = FolderPackage | ZipPackage


def write_package(
    fill: Callable[[Package], Any], output: Path | None, folder: str, at: datetime | None = None
) -> None:
    """Write a package to a new folder, or as a zip if the name ends so or none is given.

    In a zip a bag stands in a `folder` of its name; the description of a crate is at the top.
    """

    def write(out: BinaryIO) -> None:
        with zipfile.ZipFile(out, "w") as zipped:
            fill(ZipPackage(zipped, folder, at))

    if output is not None and output.suffix != ".zip":
        to_folder(lambda path: fill(FolderPackage(path)), output)
    else:
        to_output(write, output)


def _checked(path: str) -> PurePosixPath:
    checked = PurePosixPath(path)
    if checked.is_absolute() or ".." in checked.parts or not checked.parts:
        raise TamiasError(f"{path!r} is not a path in a package")
    return checked


_DECLARATION = b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"
_LINE = 79


class Bag:
    """Writes one bag: the payload file by file, then its lists."""

    def __init__(self, package: Package) -> None:
        self._package = package
        self._payload: list[Packed] = []

    def add(self, path: str, content: Iterable[bytes]) -> Packed:
        """A payload file; `path` is below `data/`."""
        packed = self._package.add(f"data/{path}", content)
        self._payload.append(packed)
        return packed

    def complete(self, info: Sequence[tuple[str, str]], at: datetime | None = None) -> None:
        """Writes the tag files; `info` are elements of `bag-info.txt` beside those that are counted.

        The bag is of the day `at`, or of today.
        """
        size = sum(packed.size for packed in self._payload)
        fields = [
            *info,
            ("Bagging-Date", (at or datetime.now(UTC)).date().isoformat()),
            ("Payload-Oxum", f"{size}.{len(self._payload)}"),
        ]
        tags = [
            self._package.add("bagit.txt", [_DECLARATION]),
            self._package.add("bag-info.txt", [_element(*each) for each in fields]),
            self._package.add("manifest-sha256.txt", map(_line, self._payload)),
        ]
        self._package.add("tagmanifest-sha256.txt", map(_line, tags))


def _element(label: str, value: str) -> bytes:
    """Return one element; a long value runs on in lines that begin with a space."""
    words = " ".join([f"{label}:", *value.split()])
    lines = wrap(words, _LINE, subsequent_indent=" ", break_long_words=False, break_on_hyphens=False)
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def _line(packed: Packed) -> bytes:
    path = packed.path.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return f"{packed.sha256}  {path}\n".encode()


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

    def add_file(self, path: str, content: Iterable[bytes], /, **given: Any) -> Packed:
        """A file and what is known of it."""
        packed = self._package.add(path, content)
        self.describe(path, "File", contentSize=str(packed.size), sha256=packed.sha256, **given)
        self._parts[path] = None
        return packed

    def add_folder(self, path: str, files: Iterable[str], /, **given: Any) -> None:
        """A folder as a dataset of its own; `path` ends in a slash."""
        inside = list(files)
        self.describe(path, "Dataset", hasPart=references(inside), **given)
        for part in inside:
            self._parts.pop(part, None)
        self._parts[path] = None

    def describe(self, identifier: str, kind: str, /, **given: Any) -> None:
        """Describe another entity; properties that are None are left out."""
        known = {word: value for word, value in given.items() if value is not None and value != []}
        self._entities.append({"@id": identifier, "@type": kind, **known})

    def describe_software(self, version: str) -> None:
        """Tamias in a version, as `#tamias`."""
        url = f"pkg:pypi/tamias@{version}"
        self.describe("#tamias", "SoftwareApplication", name="Tamias", version=version, url=url)

    def complete(
        self,
        *,
        name: str,
        description: str,
        licence: Mapping[str, str],
        at: datetime | None = None,
        **fields: Any,
    ) -> None:
        """Writes the metadata. `licence` has `@id`, `name` and `description`.

        The crate is of the time `at`, or of now; `told` is more of the crate as a whole.
        """
        now = (at or datetime.now(UTC)).isoformat(timespec="seconds").replace("+00:00", "Z")
        root = {
            "@id": "./",
            "@type": "Dataset",
            "name": name,
            "description": description,
            "datePublished": now,
            "license": {"@id": licence["@id"]},
            "hasPart": references(self._parts),
            **{word: value for word, value in fields.items() if value is not None},
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
