"""The tools: what each is for, what it takes, and what it reads. All of them only read and are brief."""

from collections.abc import Callable
from contextlib import closing
from typing import Annotated, Any, ClassVar, Final

import msgspec
from msgspec import Meta

from tamias.archive.moments import milliseconds, rfc3339, rfc3339_or_none
from tamias.archive.reader.content import Content
from tamias.archive.reader.library import NotArchived
from tamias.archive.versions.resources import read_versions
from tamias.content.charsets import decoded, encoding_of
from tamias.content.formats import CSV, TURTLE, Form, form_of
from tamias.features.archive.descriptions import describe_version
from tamias.features.catalogue.exchange import Answer
from tamias.features.service.files.comparison import compare
from tamias.features.service.queries.history import id_of_url, resource_named, version_numbered
from tamias.features.service.queries.search import LONGEST_SEARCH, MOST_WORDS, find
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.queries.usage import check_open
from tamias.model.diff import DiffLimits
from tamias.model.errors import UsageError
from tamias.model.resource import Resource, Version
from tamias.model.usage import MODELS, SHOWING

AskCatalogue = Callable[[str, str], Answer]
"""A query and an Accept header to an answer."""
MOST_VERSIONS: Final = 200
_LARGEST: Final = 16 << 20
_LIMITS: Final = DiffLimits(changes=50, read_bytes=_LARGEST, held_bytes=_LARGEST, unpacked_bytes=_LARGEST)
_ROWS: Final = f"{CSV}, {TURTLE};q=0.9"
_CUT: Final = 40_000
_HEALTH: Final = (
    b"SELECT resource.visited_at, resource.trouble, round(resource.missed)::int8 FROM resource"
    b" WHERE resource.resource = %(resource)b::text"
)
_WITHHELD: Final = (*SHOWING, *MODELS)
"""Models read what the tools return."""


class Tool(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A call of a tool: its fields are what it takes, and its docstring is what assistants are told."""

    name: ClassVar[str]

    def answer(self, db: ServiceSession, *, owner: bool) -> str:
        """Return the answer of the archive; nothing is withheld from the owner."""
        raise NotImplementedError

    @classmethod
    def describe(cls) -> dict[str, Any]:
        """Return the description of the tool for the protocol."""
        schema = msgspec.json.schema_components([cls])[1][cls.__name__]
        about = {"name": cls.name, "description": schema.pop("description"), "inputSchema": schema}
        return {**about, "annotations": {"readOnlyHint": True, "openWorldHint": False}}


_Url = Annotated[str, Meta(max_length=4096, description="the address of a resource, or its id")]
_Number = Annotated[int, Meta(ge=1, le=999_999_999)]


class SearchTool(Tool):
    """Find resources of the archive whose title, address or host has all of some words."""

    name: ClassVar[str] = "search"
    words: Annotated[str, Meta(max_length=LONGEST_SEARCH, description="words, all of which must occur")]
    limit: Annotated[int, Meta(ge=1, le=50, description="how many at most")] = 10

    def answer(self, db: ServiceSession, *, owner: bool) -> str:
        if not 1 <= len(self.words.split()) <= MOST_WORDS:
            raise UsageError(f"'words' has 1 to {MOST_WORDS} words")
        return _json(find(db, self.words, self.limit, owner=owner))


class VersionsTool(Tool):
    """List the history of a resource: when each version was captured, its size, type and SHA-256."""

    name: ClassVar[str] = "versions"
    url: _Url

    def answer(self, db: ServiceSession, *, owner: bool) -> str:
        resource, versions = _history(db, self.url)
        about = {"id": resource.id, "url": resource.url, "title": resource.title, **_health(db, resource)}
        newest = [describe_version(each) for each in versions[-MOST_VERSIONS:]]
        return _json({**about, "version_count": len(versions), "versions": newest})


class DiffTool(Tool):
    """Show what changed between two versions: rows, statements, values, lines or bytes, with counts."""

    name: ClassVar[str] = "diff"
    url: _Url
    a: Annotated[_Number, Meta(description="the older version; without it, the one before b")] | None = None
    b: Annotated[_Number, Meta(description="the newer version; without it, the newest")] | None = None

    def answer(self, db: ServiceSession, *, owner: bool) -> str:
        resource, versions = _history(db, self.url)
        b = self.b or len(versions)
        old, new = (version_numbered(db, resource, versions, each) for each in (self.a or b - 1, b))
        check_open(db, [old, new], owner=owner, words=_WITHHELD)
        found = compare(db, resource, old, new, _LIMITS)
        return _json({"a": old.number, "b": new.number, **_health(db, resource), "diff": found})


class ReadTool(Tool):
    """Read a piece of the text of one version: the newest, one by number, or that of a time."""

    name: ClassVar[str] = "read"
    url: _Url
    version: Annotated[_Number, Meta(description="by number")] | None = None
    at: (
        Annotated[str, Meta(max_length=64, description="a time: the version that was current then")] | None
    ) = None
    start: Annotated[int, Meta(ge=0, le=_LARGEST, description="the first character, from 0")] = 0
    characters: Annotated[int, Meta(ge=0, le=20_000, description="how many")] = 5000

    def answer(self, db: ServiceSession, *, owner: bool) -> str:
        resource, versions = _history(db, self.url)
        version = self._chosen(db, resource, versions)
        check_open(db, [version], owner=owner, words=_WITHHELD)
        if version.byte_size > _LARGEST:
            raise UsageError(
                f"version {version.number} has {version.byte_size} bytes; 'tamias get' gives any"
            )
        health = ", ".join(f"{name} {value}" for name, value in _health(db, resource).items() if value)
        head = f"{resource.url} ({health}), version {version.number} of {rfc3339(version.captured_at)}, "
        content = Content(resource, version, db.reader).bytes()
        if form_of(version.media_type) is Form.BYTES or b"\0" in content[:4096]:
            return f"{head}{version.media_type}: {version.byte_size} bytes that are not text"
        text = decoded(content, encoding_of(content, version.declared_type))
        piece = text[self.start : self.start + self.characters]
        span = f"characters {self.start} to {self.start + len(piece)} of {len(text)}"
        return f"{head}{version.media_type}, {span}:\n{piece}"

    def _chosen(self, db: ServiceSession, resource: Resource, versions: list[Version]) -> Version:
        if self.at is None:
            newest = versions[-1].number if versions else 0
            return version_numbered(db, resource, versions, self.version or newest)
        moment = milliseconds(self.at)
        before = [each for each in versions if each.captured_at <= moment]
        if not before:
            raise NotArchived(f"{resource.url} has no version of {self.at} or before")
        return before[-1]


class SparqlTool(Tool):
    """Query the catalogue (DCAT, PROV, CSVW) and the crawled graphs with SPARQL 1.1.

    Rows come as CSV, statements as Turtle. The prefixes dcat, dct, prov, csvw, dqv, arc need not be declared.
    """

    name: ClassVar[str] = "sparql"
    query: Annotated[
        str, Meta(max_length=100_000, description="SELECT, ASK, CONSTRUCT or DESCRIBE, best with LIMIT")
    ]

    def ask(self, ask: AskCatalogue) -> str:
        """Return the answer of the catalogue."""
        with closing(ask(self.query, _ROWS).content) as content:
            text = content.read(_CUT + 1).decode("utf-8", "replace")
        return text if len(text) <= _CUT else f"{text[:_CUT]}\n[cut here; use LIMIT, or ask for less]"


TOOLS: Final[dict[str, type[Tool]]] = {
    each.name: each for each in (SearchTool, VersionsTool, DiffTool, ReadTool, SparqlTool)
}


def _history(db: ServiceSession, named: str) -> tuple[Resource, list[Version]]:
    """A resource by its id or URL, with its versions. Raises `NotArchived`."""
    resource = resource_named(db, id_of_url(db, named) if ":" in named else named)
    return resource, read_versions(db.session, [resource.id])[resource.id]


def _health(db: ServiceSession, resource: Resource) -> dict[str, str | int | None]:
    """Return how fresh the versions of a resource are, and whether its visits go well."""
    row = db.session.fetch_one(_HEALTH, {"resource": resource.id})
    visited_at, trouble, missed = row if row is not None else (None, None, 0)
    last_visit = rfc3339_or_none(visited_at)
    return {
        "state": resource.state,
        "last_visit": last_visit,
        "trouble": trouble,
        "versions_probably_missed": missed,
    }


def _json(value: object) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode()
