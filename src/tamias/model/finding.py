"""What an analyser or a harvester finds, in batches: quads, links, descriptions of datasets, problems."""

from collections.abc import Iterable, Sequence

import msgspec
from pyoxigraph import Quad

from tamias.model.dataset import Dataset
from tamias.model.hint import Hints
from tamias.model.semantic import SemanticDatasets
from tamias.model.signal import Metas


class Quads(msgspec.Struct, frozen=True):
    """Statements as they stand in the document; plain triples are in the default graph."""

    quads: Sequence[Quad]


class Words(msgspec.Struct):
    """What a link stands among."""

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


class Links(msgspec.Struct, frozen=True):
    """References as they stand in the document, to be resolved against `base`."""

    references: list[str]
    base: str
    kind: str | None = None
    """What stands there, where the document says so: `sparql`, `sitemap`, `ckan`, ..."""


class Datasets(msgspec.Struct, frozen=True):
    """What a catalogue describes. Their DCAT is among the quads; these are for the archive's own rows."""

    datasets: list[Dataset]


class Problem(msgspec.Struct, frozen=True):
    """Something that could not be read. The rest still counts, but the reading is a partial one."""

    what: str
    line: int | None = None
    column: int | None = None
    """Both counted from 1, in characters."""
    wants: str | None = None
    """The address of what was not at hand, such as a JSON-LD context; with it, reading again can help."""
    damage: bool = False
    """Whether the bytes themselves are damaged or end too early, so that content is missing."""


Finding = Quads | Links | Datasets | Hints | SemanticDatasets | Metas | Problem
