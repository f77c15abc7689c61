"""BagIt 1.0 (RFC 8493): files with a list of their digests, so that a copy can be told from a broken one."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from tamias.sinks.packages.package import Package, Packed

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

    def complete(self, info: Sequence[tuple[str, str]]) -> None:
        """Writes the tag files; `info` are elements of `bag-info.txt` beside those that are counted."""
        size = sum(packed.size for packed in self._payload)
        told = [
            *info,
            ("Bagging-Date", datetime.now(UTC).date().isoformat()),
            ("Payload-Oxum", f"{size}.{len(self._payload)}"),
        ]
        tags = [
            self._package.add("bagit.txt", [_DECLARATION]),
            self._package.add("bag-info.txt", [_element(*each) for each in told]),
            self._package.add("manifest-sha256.txt", map(_line, self._payload)),
        ]
        self._package.add("tagmanifest-sha256.txt", map(_line, tags))


def _element(label: str, value: str) -> bytes:
    """One element; a long value runs on in lines that begin with a space."""
    words = value.split()
    lines = [f"{label}:"]
    for word in words:
        if len(lines[-1]) + len(word) >= _LINE and lines[-1].strip():
            lines.append(" " + word)
        else:
            lines[-1] += " " + word
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def _line(packed: Packed) -> bytes:
    path = packed.path.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return f"{packed.sha256}  {path}\n".encode()
