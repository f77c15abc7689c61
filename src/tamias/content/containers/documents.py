"""Documents of a body: each layer is recognised by its bytes and unpacked while it is read."""

import io
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote, unquote

import msgspec

from tamias.content.containers.archives import Member, sevenzip_members, tar_members, zip_members
from tamias.content.containers.codecs import CODECS, DamageError, Unpacked, buffered, head, stored_chunks
from tamias.content.containers.limits import MIB, Meter, OpenLimits
from tamias.content.formats import SEVEN_ZIP, TAR, ZIP, bare_type
from tamias.content.sniff import PACKED_SUFFIXES, contradicted_claim, found_charset, found_type
from tamias.model.capture import Body
from tamias.model.document import Document, DocumentBudget
from tamias.model.finding import Problem

_ABSOLUTE = re.compile(r'https?://[^\x00-\x20<>"{}|^`\\/?#]+[^\x00-\x20<>"{}|^`\\]*', re.IGNORECASE)
_ENCODED = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*%3A", re.IGNORECASE)


def member_graph(name: str) -> str | None:
    """The http(s) IRI that a name spells, percent-encoded: `http%3A%2F%2Fa%2Fb` is `http://a/b`.

    Folders before it do not matter. A suffix belongs to the IRI, which may end with one itself.
    """
    spelled = name.rpartition("/")[2]
    if not _ENCODED.match(spelled):
        return None
    graph = unquote(spelled, errors="replace")
    return graph if _ABSOLUTE.fullmatch(graph) and "\ufffd" not in graph else None


def stand_in(url: str, name: str) -> str | None:
    """The graph of a name that is encoded like an IRI, but spells none of http(s)."""
    spelled = name.rpartition("/")[2]
    if not _ENCODED.match(spelled) or member_graph(name):
        return None
    return f"{url.partition('#')[0]}#{quote(spelled, safe='%')}"


DEFAULT_LIMITS = OpenLimits()
SPOOL = 8 * MIB
"""An inner zip or 7z larger than this goes from memory to an unnamed temporary file."""

ARCHIVES = frozenset({ZIP, TAR, SEVEN_ZIP})


class _Layer(msgspec.Struct, frozen=True, kw_only=True):
    """The claims about a stream before it is read."""

    name: str
    declared_type: str | None
    member: str | None = None
    graph: str | None = None
    layers: int = 0
    archives: int = 0


def documents(
    body: Body,
    *,
    url: str,
    declared_type: str | None,
    limits: OpenLimits = DEFAULT_LIMITS,
    name: str | None = None,
    budget: DocumentBudget | None = None,
) -> Iterator[Document | Problem]:
    """The documents of a body, each to be consumed before the next is asked for.

    `budget` is what all of them together may become; by default what the body's size allows.
    `name` is the name of the file whose ending counts, where it is not the last segment of the URL.

    Damage never raises: a stream ends where its data does, and the `Problem` follows its document.
    A member that cannot be read is a `Problem` too. Only `LimitExceeded` is raised, here or by a stream.
    """
    if name is None:
        name = url.partition("#")[0].partition("?")[0].rpartition("/")[2]
    with body_stream(body) as stream:
        peeler = _Peeler(url, Meter(limits, stream.tell), limits, budget or DocumentBudget(body.size))
        yield from peeler.parts(stream, _Layer(name=name, declared_type=declared_type))


def body_stream(body: Body) -> BinaryIO:
    """The bytes of a body from the first on, wherever they are."""
    if body.descriptor is not None:
        os.lseek(body.descriptor, 0, os.SEEK_SET)
        return open(os.dup(body.descriptor), "rb")
    return io.BytesIO(body.data or b"") if body.path is None else open(body.path, "rb")


class _Peeler:
    """Takes the layers off one body."""

    def __init__(self, url: str, meter: Meter, limits: OpenLimits, budget: DocumentBudget) -> None:
        self._url = url
        self._budget = budget
        self._meter = meter
        self._limits = limits
        self._problems: list[Problem] = []

    def parts(self, stream: BinaryIO, layer: _Layer) -> Iterator[Document | Problem]:
        start = head(stream)
        found = found_type(start, layer.declared_type, layer.name)
        if found in CODECS:
            yield from self._peeled(stream, found, layer)
        elif found in ARCHIVES:
            yield from self._members(stream, found, layer)
        else:
            yield self._document(stream, start, found, layer)
            if declared := contradicted_claim(found, layer.declared_type, layer.name):
                self._damage(layer)(f"declared as {declared}, but read as {found}")
        while self._problems:
            yield self._problems.pop(0)

    def _document(self, stream: BinaryIO, start: bytes, found: str, layer: _Layer) -> Document:
        return Document(
            url=self._url,
            stream=stream,
            media_type=found,
            declared_type=layer.declared_type,
            charset=found_charset(start, layer.declared_type, found),
            member=layer.member,
            graph=layer.graph,
            budget=self._budget,
        )

    def _peeled(self, stream: BinaryIO, codec: str, layer: _Layer) -> Iterator[Document | Problem]:
        if layer.layers == self._limits.max_layers:
            yield self._too_deep(layer, f"{self._limits.max_layers} layers (limit open.max_layers)")
            return
        chunks = CODECS[codec](stream, self._limits.max_memory)
        inner = buffered(Unpacked(chunks, self._meter.unpacked, self._damage(layer)))
        declared_type = None if bare_type(layer.declared_type) == codec else layer.declared_type
        yield from self.parts(inner, _inside_codec(layer, declared_type))

    def _members(self, stream: BinaryIO, archive: str, layer: _Layer) -> Iterator[Document | Problem]:
        if layer.archives == self._limits.max_archives:
            yield self._too_deep(layer, f"{self._limits.max_archives} archives (limit open.max_archives)")
            return
        if layer.layers == self._limits.max_layers:
            yield self._too_deep(layer, f"{self._limits.max_layers} layers (limit open.max_layers)")
            return
        try:
            for member in self._listed(stream, archive):
                yield from self._member(member, layer)
        except DamageError as damage:
            self._damage(layer)(str(damage))

    def _listed(self, stream: BinaryIO, archive: str) -> Iterator[Member]:
        if archive == TAR:
            yield from tar_members(stream, self._meter)
            return
        listed = zip_members if archive == ZIP else sevenzip_members
        with _seekable(stream) as file:
            yield from listed(file, self._meter, self._limits.max_memory)

    def _member(self, member: Member, layer: _Layer) -> Iterator[Document | Problem]:
        inner = _inside_archive(layer, member.name, self._url)
        if member.skipped is not None:
            yield Problem(f"{inner.member}: {member.skipped}, skipped")
            return
        if inner.graph and inner.graph != member_graph(member.name):
            yield Problem(f"{inner.member}: its name spells no http(s) IRI, so its graph is {inner.graph}")
        # Of others the bytes were counted by the layer around them.
        count = self._meter.unpacked if member.packed else lambda _: None
        yield from self.parts(buffered(Unpacked(member.chunks, count, self._damage(inner))), inner)

    def _damage(self, layer: _Layer) -> Callable[[str], None]:
        """Return what notes what is wrong with a layer, to be told after its document."""
        prefix = "" if layer.member is None else f"{layer.member}: "
        return lambda what: self._problems.append(Problem(prefix + what, damage=True))

    def _too_deep(self, layer: _Layer, limit: str) -> Problem:
        return Problem(f"{layer.member or self._url}: packed in more than {limit}, skipped")


def _inside_codec(layer: _Layer, declared_type: str | None) -> _Layer:
    stem, _, suffix = layer.name.rpartition(".")
    name = stem + PACKED_SUFFIXES[suffix.lower()] if suffix.lower() in PACKED_SUFFIXES else layer.name
    return msgspec.structs.replace(layer, name=name, declared_type=declared_type, layers=layer.layers + 1)


def _inside_archive(layer: _Layer, name: str, url: str) -> _Layer:
    return _Layer(
        name=name,
        declared_type=None,
        member=name if layer.member is None else f"{layer.member}!/{name}",
        graph=member_graph(name) or stand_in(url, name),
        layers=layer.layers + 1,
        archives=layer.archives + 1,
    )


def _seekable(stream: BinaryIO) -> BinaryIO:
    """The stream itself, or a copy that ends with its use; the meter has bounded what can come."""
    if stream.seekable():
        return stream
    copy = tempfile.SpooledTemporaryFile(SPOOL)  # noqa: SIM115 - closed by whoever asked for it
    for chunk in stored_chunks(stream):
        copy.write(chunk)
    copy.seek(0)
    return copy  # type: ignore[return-value]


def discard(body: Body | None) -> None:
    """The body is not needed any more."""
    if body is not None and body.path is not None:
        Path(body.path).unlink(missing_ok=True)


def start_of(body: Body, most: int) -> bytes:
    """The first bytes of a body."""
    if body.data is not None:
        return body.data[:most]
    with body_stream(body) as file:
        return file.read(most)


def whole(body: Body | None, most: int) -> bytes | None:
    """The bytes of a body, unless there are too many."""
    return start_of(body, body.size) if body is not None and body.size <= most else None
