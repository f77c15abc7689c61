"""How a portal's record becomes DCAT without losing anything: a pure function of the record.

What the portal's own table reads and says in DCAT is mapped. Every other value of the record is an extra: a
statement about the record in the words of the portal, unless the table says why it is dropped.
"""

from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

import msgspec
from lxml import etree
from pyoxigraph import Literal, NamedNode, Quad

from tamias.harvesters.kit.dcat import dataset_quads
from tamias.harvesters.kit.terms import DcatStatements, below, last_segment, text_literal, word
from tamias.model.dataset import Dataset
from tamias.model.finding import SourceRecord

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

FIELDS: Final = "https://w3id.org/tamias/field#"
"""The beginning of the names of extras: `field#ckan.resources.cache_url`."""

_SHORT = 4
"""A shorter text may stand in a longer one by chance."""
MOST_SEARCHED = 200_000_000
"""Characters looked through for the values of one record; in a larger one only whole values are found."""
_NOTATION: Final = frozenset({"key", "typeName", "typeClass", "multiple"})
"""Members that only name and type the `value` beside them."""

Path = tuple[str | int, ...]


class RecordMapping(NamedTuple):
    """How the records of one kind of portal become datasets."""

    name: str
    dataset: Callable[[Any, str], Dataset]
    """Reads a record; the second argument is the catalogue. May raise what a record of a wrong shape does."""
    dropped: Mapping[str, str] = {}
    """Fields that are not kept, by their paths without numbers, each with the reason."""
    volatile: Mapping[str, str] = {}
    """Fields that change by themselves, with all that is in them, each with the reason: if nothing else
    changed, it is no new version of the record."""


class MappedRecord(NamedTuple):
    """What became of a record."""

    dataset: Dataset
    quads: list[Quad]
    source: SourceRecord


def map_record(mapping: RecordMapping, body: bytes, catalogue: str) -> MappedRecord:
    """The dataset that a record in JSON describes and all that is said of it, extras included.

    Raises `msgspec.DecodeError` for what is no JSON, and what the mapping raises.
    """
    record = msgspec.json.decode(body)
    if not isinstance(record, dict):
        raise ValueError("it is not an object")
    read: set[Path] = set()
    dataset = mapping.dataset(_tracked(record, (), read), catalogue)
    quads = dataset_quads(dataset, catalogue)
    said = SaidValues(quads)
    kept = (leaf for leaf in leaves(record) if not (leaf.path in read and said.has(leaf.value)))
    quads += _extras(mapping, kept, dataset.record, catalogue)
    source = source_record(mapping, dataset.record, body, catalogue, content=content_digest(mapping, record))
    return MappedRecord(dataset, quads, source)


def content_digest(mapping: RecordMapping, record: Any) -> bytes | None:
    """The SHA-256 of a record without its volatile fields; None where the mapping has none."""
    if not mapping.volatile:
        return None
    lasting = _without(record, "", mapping.volatile)
    return sha256(msgspec.json.encode(lasting, order="sorted")).digest()


def _without(value: Any, field: str, volatile: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_without(each, field, volatile) for each in value]
    if not isinstance(value, dict):
        return value
    named = {key: f"{field}.{key}" if field else key for key in value}
    return {
        key: _without(each, named[key], volatile) for key, each in value.items() if named[key] not in volatile
    }


def map_element(mapping: RecordMapping, element: "Element", dataset: Dataset, catalogue: str) -> MappedRecord:
    """The same of a record in XML that was read as a dataset already."""
    quads = dataset_quads(dataset, catalogue)
    said = SaidValues(quads)
    kept = (leaf for leaf in leaves(_tree(element)) if not said.has(leaf.value))
    quads += _extras(mapping, kept, dataset.record, catalogue)
    body = etree.tostring(element, with_tail=False)
    source = source_record(mapping, dataset.record, body, catalogue, "application/xml")
    return MappedRecord(dataset, quads, source)


def source_record(
    mapping: RecordMapping,
    record: str,
    body: bytes,
    catalogue: str,
    media_type: str = "application/json",
    content: bytes | None = None,
) -> SourceRecord:
    """A record as it is kept."""
    return SourceRecord(
        iri=below(catalogue, record).value,
        record=record,
        mapping=mapping.name,
        catalogue=catalogue,
        media_type=media_type,
        body=bytes(body),
        content=content,
    )


def _tree(element: "Element") -> Any:
    """An element as JSON would have it: its text, or a table of attributes, elements and text."""
    found: dict[str, Any] = {"@" + _local(name): value for name, value in element.attrib.items()}
    for child in element.iterchildren("{*}*"):
        inner = _tree(child)
        before = found.setdefault(_local(child.tag), inner)
        if before is not inner:
            found[_local(child.tag)] = [*before, inner] if isinstance(before, list) else [before, inner]
    text = (element.text or "") + "".join(child.tail or "" for child in element)
    if not found:
        return text
    return found | ({"#text": text} if text.strip() else {})


def _local(name: Any) -> str:
    return str(name).rpartition("}")[2]


class Leaf(NamedTuple):
    """One value of a record: where it stands, the name of its field, and the value."""

    path: Path
    named: Path
    """The same where a list of names and values is read as what it names."""
    value: Any

    @property
    def field(self) -> str:
        """The name of the field, without numbers."""
        return ".".join(part for part in self.named if isinstance(part, str))


def leaves(value: Any, path: Path = (), named: Path = ()) -> Iterator[Leaf]:
    """All values but empty ones. Lists of numbers, also in lists, are one value each."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key), (*named, key))
    elif isinstance(value, list) and not _is_one_value(value):
        for number, inner in enumerate(value):
            name = _name(inner)
            if name is None:
                yield from leaves(inner, (*path, number), (*named, number))
                continue
            for key, part in inner.items():
                if key not in _NOTATION:
                    yield from leaves(
                        part, (*path, number, key), (*named, name, *(() if key == "value" else (key,)))
                    )
    elif value is not None and value != [] and not (isinstance(value, str) and not value.strip()):
        yield Leaf(path, named, value)


class SaidValues:
    """The values that statements have, to be asked whether one is among them."""

    def __init__(self, quads: list[Quad]) -> None:
        terms = [term for quad in quads for term in (quad.subject, quad.object) if hasattr(term, "value")]
        values = {term.value.strip() for term in terms}
        self._values = values | {
            last_segment(term.value).lower() for term in terms if isinstance(term, NamedNode)
        }
        self._text = "\n".join(values)
        self._searches = MOST_SEARCHED // (len(self._text) + 1)

    def has(self, value: Any) -> bool:
        """Whether a statement has it: as it stands, as the end of an IRI, or within a longer text."""
        text = _as_text(value).strip()
        if text in self._values or text.lower() in self._values:
            return True
        if len(text) < _SHORT or isinstance(value, bool) or self._searches <= 0:
            return False
        self._searches -= 1
        return text in self._text


def _extras(mapping: RecordMapping, kept: Iterator[Leaf], record: str, catalogue: str) -> list[Quad]:
    told = DcatStatements(catalogue, record)
    for leaf in kept:
        if leaf.field in mapping.dropped:
            continue
        keys = [quote(part, safe="", errors="replace") for part in leaf.named if isinstance(part, str)]
        predicate = NamedNode(FIELDS + ".".join([mapping.name, *keys]))
        told.quads.append(Quad(_holder(told, leaf.named), predicate, _literal(leaf.value)))
    return list(dict.fromkeys(told.quads))


def _holder(told: DcatStatements, path: Path) -> NamedNode:
    """The record, or its part that an item of a list is."""
    numbers = [place for place, part in enumerate(path[:-1]) if isinstance(part, int)]
    if not numbers:
        return told.part()
    segments = [quote(str(part), safe="", errors="replace") for part in path[: numbers[-1] + 1]]
    node = told.part("source", *segments)
    told.add(told.part(), "dct:hasPart", node)
    return node


def _literal(value: Any) -> Literal:
    if isinstance(value, bool):
        return Literal(value)
    if isinstance(value, int):
        return Literal(str(value), datatype=word("xsd:integer"))
    if isinstance(value, float):
        return Literal(_as_text(value), datatype=word("xsd:double"))
    if isinstance(value, list):
        return Literal(_as_text(value), datatype=word("rdf:JSON"))
    return text_literal(str(value))


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return msgspec.json.encode(value).decode()


def _is_one_value(items: list[Any]) -> bool:
    """Whether a list is data rather than a list of fields: coordinates, a box."""
    return (len(items) > 1 or (len(items) == 1 and isinstance(items[0], list))) and _is_numeric(items)


def _is_numeric(items: list[Any]) -> bool:
    return bool(items) and all(
        _is_numeric(each) if isinstance(each, list) else isinstance(each, int | float) for each in items
    )


def _name(value: Any) -> str | None:
    """The name of a field that is written as a name beside a value."""
    if isinstance(value, dict) and "value" in value:
        name = value.get("key", value.get("typeName"))
        return name if isinstance(name, str) and name else None
    return None


class _TrackedTable(dict[str, Any]):
    """A JSON object that notes which of its values are read."""

    __slots__ = ("_path", "_read")

    def __init__(self, values: dict[str, Any], path: Path, read: set[Path]) -> None:
        super().__init__(values)
        self._path = path
        self._read = read

    def get(self, key: str, default: Any = None) -> Any:
        return self._note(key, super().get(key, default))

    def __getitem__(self, key: str) -> Any:
        return self._note(key, super().__getitem__(key))

    def items(self) -> Any:
        return [(key, self._note(key, value)) for key, value in super().items()]

    def values(self) -> Any:
        return [value for _, value in self.items()]

    def _note(self, key: str, value: Any) -> Any:
        if isinstance(value, list):
            self._read.add((*self._path, key))
            self._read.update((*self._path, key, number) for number in range(len(value)))
        elif not isinstance(value, dict):
            self._read.add((*self._path, key))
        return value


def _tracked(value: Any, path: Path, read: set[Path]) -> Any:
    if isinstance(value, dict):
        inner = {key: _tracked(each, (*path, key), read) for key, each in value.items()}
        return _TrackedTable(inner, path, read)
    if isinstance(value, list) and not _is_one_value(value):
        return [_tracked(each, (*path, number), read) for number, each in enumerate(value)]
    return value


def plain(value: Any) -> Any:
    """A value with all that is in it read, such as a geometry that is kept as it stands."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value
