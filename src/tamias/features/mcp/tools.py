"""The tools: what each is for, what it takes, and what it reads. All of them only read and are brief."""

from collections.abc import Callable
from contextlib import closing
from typing import Any, Final

import msgspec

from tamias.archive.moments import milliseconds, rfc3339
from tamias.archive.reader.content import Content
from tamias.archive.reader.descriptions import describe_version
from tamias.archive.reader.library import NotArchived
from tamias.archive.versions.resources import read_versions
from tamias.content.charsets import decoded, encoding_of
from tamias.content.formats import CSV, TURTLE, Form, form_of
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

Arguments = dict[str, Any]
OnSession = Callable[[ServiceSession, Arguments, bool], str]
"""At a db, with arguments, whether for the owner, to whom nothing is withheld."""
AskCatalogue = Callable[[str, str], Answer]
"""A query and an Accept header to an answer."""
MOST_HITS: Final = 50
MOST_VERSIONS: Final = 200
MOST_CHANGES: Final = 50
MOST_CHARACTERS: Final = 20_000
_LARGEST: Final = 16 << 20
_LIMITS: Final = DiffLimits(
    changes=MOST_CHANGES, read_bytes=_LARGEST, held_bytes=_LARGEST, unpacked_bytes=_LARGEST
)
_LONGEST_URL: Final = 4096
_LONGEST_QUERY: Final = 100_000
_ROWS: Final = f"{CSV}, {TURTLE};q=0.9"
_CUT: Final = 40_000
_WITHHELD: Final = (*SHOWING, *MODELS)
"""Models read what the tools return."""
_TYPES: Final[dict[str, type]] = {"string": str, "integer": int}


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool, which reads the database or asks the catalogue."""

    name: str
    about: str
    takes: dict[str, dict[str, Any]]
    needs: tuple[str, ...]
    on_session: OnSession | None = None
    of_catalogue: Callable[[AskCatalogue, Arguments], str] | None = None

    def describe(self) -> dict[str, Any]:
        """Return the description of the tool for the protocol."""
        schema = {
            "type": "object",
            "properties": self.takes,
            "required": list(self.needs),
            "additionalProperties": False,
        }
        hints = {"readOnlyHint": True, "openWorldHint": False}
        return {"name": self.name, "description": self.about, "inputSchema": schema, "annotations": hints}

    def fault(self, arguments: object) -> str | None:
        """Return what is wrong with arguments, or None."""
        if not isinstance(arguments, dict):
            return "the arguments are an object"
        for name in self.needs:
            if name not in arguments:
                return f"'{name}' is missing"
        faults = (self._fault(name, value) for name, value in arguments.items())
        return next((fault for fault in faults if fault is not None), None)

    def _fault(self, name: str, value: object) -> str | None:
        schema = self.takes.get(name)
        if schema is None:
            return f"there is no argument '{name[:100]}'; there are {', '.join(self.takes)}"
        if not isinstance(value, _TYPES[schema["type"]]) or isinstance(value, bool):
            return f"'{name}' is of the type {schema['type']}"
        if isinstance(value, str) and len(value) > schema["maxLength"]:
            return f"'{name}' has {schema['maxLength']} characters at most"
        if isinstance(value, int) and not schema["minimum"] <= value <= schema["maximum"]:
            return f"'{name}' lies between {schema['minimum']} and {schema['maximum']}"
        return None


def _search(db: ServiceSession, arguments: Arguments, owner: bool) -> str:
    words, most = arguments["words"], arguments.get("limit", 10)
    if not 1 <= len(words.split()) <= MOST_WORDS:
        raise UsageError(f"'words' has 1 to {MOST_WORDS} words")
    return _json(find(db, words, most, owner=owner))


def _versions(db: ServiceSession, arguments: Arguments, _: bool) -> str:
    resource, versions = _history(db, arguments["url"])
    about = {"id": resource.id, "url": resource.url, "title": resource.title, "state": resource.state}
    newest = [describe_version(each) for each in versions[-MOST_VERSIONS:]]
    return _json({**about, "version_count": len(versions), "versions": newest})


def _diff(db: ServiceSession, arguments: Arguments, owner: bool) -> str:
    resource, versions = _history(db, arguments["url"])
    b = arguments.get("b", len(versions))
    old, new = (version_numbered(db, resource, versions, number) for number in (arguments.get("a", b - 1), b))
    check_open(db, [old, new], owner=owner, words=_WITHHELD)
    found = compare(db, resource, old, new, _LIMITS)
    return _json({"a": old.number, "b": new.number, "diff": found})


def _read(db: ServiceSession, arguments: Arguments, owner: bool) -> str:
    resource, versions = _history(db, arguments["url"])
    version = _chosen(db, resource, versions, arguments)
    check_open(db, [version], owner=owner, words=_WITHHELD)
    if version.byte_size > _LARGEST:
        raise UsageError(f"version {version.number} has {version.byte_size} bytes; 'tamias get' gives any")
    head = f"{resource.url}, version {version.number} of {rfc3339(version.captured_at)}, "
    content = Content(resource, version, db.reader).bytes()
    if form_of(version.media_type) is Form.BYTES or b"\0" in content[:4096]:
        return f"{head}{version.media_type}: {version.byte_size} bytes that are not text"
    text = decoded(content, encoding_of(content, version.declared_type))
    start = arguments.get("start", 0)
    piece = text[start : start + arguments.get("characters", 5000)]
    return f"{head}{version.media_type}, characters {start} to {start + len(piece)} of {len(text)}:\n{piece}"


def _sparql(ask: AskCatalogue, arguments: Arguments) -> str:
    with closing(ask(arguments["query"], _ROWS).content) as content:
        text = content.read(_CUT + 1).decode("utf-8", "replace")
    return text if len(text) <= _CUT else f"{text[:_CUT]}\n[cut here; use LIMIT, or ask for less]"


def _history(db: ServiceSession, named: str) -> tuple[Resource, list[Version]]:
    """A resource by its id or URL, with its versions. Raises `NotArchived`."""
    resource = resource_named(db, id_of_url(db, named) if ":" in named else named)
    return resource, read_versions(db.session, [resource.id])[resource.id]


def _chosen(db: ServiceSession, resource: Resource, versions: list[Version], arguments: Arguments) -> Version:
    if "at" not in arguments:
        newest = versions[-1].number if versions else 0
        return version_numbered(db, resource, versions, arguments.get("version", newest))
    moment = milliseconds(arguments["at"])
    before = [each for each in versions if each.captured_at <= moment]
    if not before:
        raise NotArchived(f"{resource.url} has no version of {arguments['at']} or before")
    return before[-1]


def _json(value: object) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode()


def _text(about: str, most: int) -> dict[str, Any]:
    return {"type": "string", "description": about, "maxLength": most}


def _number(about: str, least: int, most: int) -> dict[str, Any]:
    return {"type": "integer", "description": about, "minimum": least, "maximum": most}


_URL = _text("the address of a resource, or its id", _LONGEST_URL)
_LAST = 999_999_999

TOOLS: Final = {
    tool.name: tool
    for tool in (
        Tool(
            name="search",
            about="Finds resources of the archive whose title, address or host has all of some words.",
            takes={
                "words": _text("words, all of which must occur", LONGEST_SEARCH),
                "limit": _number("how many at most; the default is 10", 1, MOST_HITS),
            },
            needs=("words",),
            on_session=_search,
        ),
        Tool(
            name="versions",
            about="The history of a resource: when each version was captured, its size, type and SHA-256.",
            takes={"url": _URL},
            needs=("url",),
            on_session=_versions,
        ),
        Tool(
            name="diff",
            about="What changed between two versions: rows, statements, values, lines or bytes, with counts.",
            takes={
                "url": _URL,
                "a": _number("the older version; the default is the one before b", 1, _LAST),
                "b": _number("the newer version; the default is the newest", 1, _LAST),
            },
            needs=("url",),
            on_session=_diff,
        ),
        Tool(
            name="read",
            about="A piece of the text of one version: the newest, one by number, or that of a time.",
            takes={
                "url": _URL,
                "version": _number("by number", 1, _LAST),
                "at": _text("the version that was current at this time: RFC 3339, or a day", 64),
                "start": _number("the first character, from 0; the default is 0", 0, _LARGEST),
                "characters": _number("how many; the default is 5000", 1, MOST_CHARACTERS),
            },
            needs=("url",),
            on_session=_read,
        ),
        Tool(
            name="sparql",
            about="A SPARQL 1.1 query over the catalogue (DCAT, PROV, CSVW) and the crawled graphs; rows as "
            "CSV, statements as Turtle. The prefixes dcat, dct, prov, csvw, dqv, arc need not be declared.",
            takes={"query": _text("SELECT, ASK, CONSTRUCT or DESCRIBE, best with LIMIT", _LONGEST_QUERY)},
            needs=("query",),
            of_catalogue=_sparql,
        ),
    )
}
