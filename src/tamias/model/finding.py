"""The findings of analysers and harvesters in batches: quads, links, datasets, problems.

A harvest is the many requests that an address takes which is more than a document (endpoint, portal).
"""

from collections.abc import Iterable, Sequence

import msgspec
from pyoxigraph import Quad

from tamias.model.capture import Outcome
from tamias.model.dataset import Dataset
from tamias.model.document import TextPosition
from tamias.model.site import Hints, Metas, SemanticDatasets


class Quads(msgspec.Struct, frozen=True):
    """Statements as they stand in the document; plain triples are in the default graph."""

    quads: Sequence[Quad]


class Words(msgspec.Struct):
    """The words around a link."""

    anchor: str
    """What is clicked on."""
    left: str
    """What stands before it in the same paragraph."""
    right: str
    language: str | None = None
    count: int = 1
    """How often the page has the link."""


class Worded(list[str]):
    """References that know their words, where somebody wants them; as a plain list they are the same."""

    def __init__(self, references: Iterable[str], words: dict[str, Words]) -> None:
        super().__init__(references)
        self.words = words


class Links(msgspec.Struct, frozen=True, gc=False):
    """References as they stand in the document, to be resolved against `base`."""

    references: list[str]
    base: str
    kind: str | None = None
    """What stands there, where the document says so: `sparql`, `sitemap`, `ckan`, ..."""


class SourceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record as a catalogue gave it. What it describes is a pure function of it."""

    iri: str
    """Its name: the catalogue's address, and the catalogue's identifier of the record behind a `#`."""
    record: str
    mapping: str
    """By which rules it is read, such as `ckan`."""
    catalogue: str
    media_type: str
    body: bytes
    content: bytes | None = None
    """The SHA-256 of what counts as its content, without fields that change by themselves; None: of all."""


class SourceRecords(msgspec.Struct, frozen=True):
    """Records that are kept as documents."""

    records: Sequence[SourceRecord]


class Datasets(msgspec.Struct, frozen=True):
    """The datasets of a catalogue. Their DCAT is among the quads; these are for the archive's own rows."""

    datasets: list[Dataset]


class Present(msgspec.Struct, frozen=True):
    """Records that the catalogue still lists, by its own identifiers; they were not read again."""

    records: Sequence[str]


class Deleted(msgspec.Struct, frozen=True):
    """Records that the catalogue says it has deleted."""

    records: Sequence[str]


class Problem(msgspec.Struct, frozen=True):
    """A part that could not be read. The rest still counts, but the reading is a partial one."""

    what: str
    line: int | None = None
    column: int | None = None
    """Both counted from 1, in characters."""
    wants: str | None = None
    """The address of what was not at hand, such as a JSON-LD context; with it, reading again can help."""
    damage: bool = False
    """Whether the bytes themselves are damaged or end too early, so that content is missing."""


Finding = (
    Quads
    | Links
    | SourceRecords
    | Datasets
    | Present
    | Deleted
    | Hints
    | SemanticDatasets
    | Metas
    | Problem
    | TextPosition
)


class Harvest(msgspec.Struct, frozen=True, kw_only=True):
    """The task of a harvester: where to go, and how far an earlier attempt came."""

    url: str
    kind: str
    state: bytes | None = None
    """Of the last step that was kept; None begins anew."""
    bookmark: bytes | None = None
    """What the last complete harvest left for this one, such as what it has seen."""
    trusted: bool = False
    """Whether the user named the address: then it may speak for any graph but our own."""


class HarvestEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a harvest. The reason is for people: how much, how complete, and how that is known."""

    outcome: Outcome
    reason: str
    retry: bool = False
    """Whether trying again later can help; it then goes on after the last step that was kept."""
    retry_after_ms: int | None = None
    bookmark: bytes | None = None
    adds: bool = False
    """Whether it brought only what is new: then what earlier harvests brought counts as well."""
    complete: bool = False
    """Whether all there is was seen: only then can anything be said to have vanished."""
    changes_only: bool = False
    """Whether it read only what changed since the harvest that left the bookmark: all else is as the records
    say that are kept."""


class HarvestStep(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one page and the state to continue from, stored together or not at all."""

    state: bytes
    findings: Sequence[Finding] = ()
    end: HarvestEnd | None = None
    """With the last step."""
    earned: float = 0.0
    """Visits that it has earned its host, where the harvester says so itself: see `tamias.permit.traps`."""
