"""Mappings of portals' records to DCAT that lose nothing: pure functions of the record.

What the portal's own table reads and says in DCAT is mapped. Every other value of the record is an extra: a
statement about the record in the words of the portal, unless the table says why it is dropped.
"""

from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from lxml import etree
from pyoxigraph import Literal, NamedNode, Quad, Triple

from tamias import plugins
from tamias.features.dcat.datasets.dcat import dataset_quads
from tamias.features.dcat.datasets.from_dcat import datasets_in
from tamias.features.dcat.datasets.terms import DcatStatements, below, last_segment, segment, text_literal
from tamias.features.dcat.terms import typed
from tamias.model.dataset import Dataset
from tamias.model.finding import SourceRecord
from tamias.model.vocabulary import word

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

_JSON: Final = "application/json"
FIELDS: Final = "https://w3id.org/tamias/field#"
"""The beginning of the names of extras: `field#ckan.resources.cache_url`."""

_SHORT = 4
"""A shorter text may stand in a longer one by chance."""
MOST_SEARCHED = 200_000_000
"""Characters looked through for the values of one record; in a larger one only whole values are found."""
_NOTATION: Final = frozenset({"key", "typeName", "typeClass", "multiple"})
"""Members that only name and type the `value` beside them."""

BAD = (msgspec.MsgspecError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
"""What a record or a page of a wrong shape may raise while it is read."""

Path = tuple[str | int, ...]


class RecordMapping(NamedTuple):
    """The mapping of the records of one kind of portal."""

    name: str
    dataset: Callable[[Any, str], Dataset]
    """Reads a record; the second argument is the catalogue. May raise what a record of a wrong shape does."""
    dropped: Mapping[str, str] = {}
    """Fields that are not kept, by their paths without numbers, each with the reason."""
    volatile: Mapping[str, str] = {}
    """Fields that change by themselves, with all that is in them, each with the reason: if nothing else
    changed, it is no new version of the record."""
    quads: Callable[[SourceRecord], list[Quad]] | None = None
    """Reads a stored record that is RDF itself."""


class MappedRecord(NamedTuple):
    """A dataset, its statements, and the record that they are from."""

    dataset: Dataset
    quads: list[Quad]
    source: SourceRecord


def map_record(mapping: RecordMapping, body: bytes, catalogue: str) -> MappedRecord:
    """Map a record in JSON to a dataset and statements, extras included.

    Raises `msgspec.DecodeError` for what is no JSON, and what the mapping raises.
    """
    record = msgspec.json.decode(body)
    if not isinstance(record, dict):
        raise ValueError("it is not an object")
    read: set[Path] = set()
    dataset = mapping.dataset(_tracked(record, (), read), catalogue)
    quads = dataset_quads(dataset, catalogue)
    said = SaidValues(quads)
    extras = (leaf for leaf in leaves(record) if not (leaf.path in read and said.has(leaf.value)))
    quads += _extras(mapping, extras, dataset.record, catalogue)
    source = source_record(mapping, dataset.record, body, catalogue, content=content_digest(mapping, record))
    return MappedRecord(dataset, quads, source)


def mapping_of(source: SourceRecord) -> RecordMapping:
    """Return the mapping that a stored record is read by. Raises `KeyError` if it is not installed."""
    if source.mapping not in plugins.parts("mappings"):
        raise KeyError(source.mapping)
    found = plugins.load("mappings", source.mapping)
    return found if isinstance(found, RecordMapping) else found(source.record)


def map_again(source: SourceRecord) -> list[Quad]:
    """Read a stored record with its mapping as it is now. May raise one of `BAD`."""
    mapping = mapping_of(source)
    if mapping.quads is not None:
        return mapping.quads(source)
    if source.media_type == _JSON:
        return map_record(mapping, source.body, source.catalogue).quads
    return map_stored_element(mapping, source)


def map_stored_element(mapping: RecordMapping, source: SourceRecord) -> list[Quad]:
    """Read a stored record in XML."""
    element = element_of(source)
    return map_element(mapping, element, mapping.dataset(element, source.catalogue), source.catalogue).quads


def dataset_again(source: SourceRecord) -> Dataset | None:
    """Return the dataset that a stored record describes. May raise one of `BAD`."""
    mapping = mapping_of(source)
    if mapping.quads is not None:
        return next(iter(datasets_in(mapping.quads(source), source.catalogue)), None)
    record = msgspec.json.decode(source.body) if source.media_type == _JSON else element_of(source)
    return mapping.dataset(record, source.catalogue)


def element_of(source: SourceRecord) -> "Element":
    """Parse a stored record in XML, without entities and without the network."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
    return etree.fromstring(source.body, parser)


def content_digest(mapping: RecordMapping, record: Any) -> bytes | None:
    """Return the SHA-256 of a record without its volatile fields; None where the mapping has none."""
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
    """Map a record in XML that was read as a dataset already."""
    quads = dataset_quads(dataset, catalogue)
    said = SaidValues(quads)
    extras = (leaf for leaf in leaves(_tree(element)) if not said.has(leaf.value))
    quads += _extras(mapping, extras, dataset.record, catalogue)
    body = etree.tostring(element, with_tail=False)
    source = source_record(mapping, dataset.record, body, catalogue, "application/xml")
    return MappedRecord(dataset, quads, source)


def source_record(
    mapping: RecordMapping,
    record: str,
    body: bytes,
    catalogue: str,
    media_type: str = _JSON,
    content: bytes | None = None,
) -> SourceRecord:
    """Return a record as it is stored."""
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
    """Return an element as JSON would have it: its text, or a table of attributes, elements and text."""
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
    """A value of a record: its path, the name of its field, and the value."""

    path: Path
    named: Path
    """The same where a list of names and values is read as what it names."""
    value: Any

    @property
    def field(self) -> str:
        """Return the name of the field, without numbers."""
        return ".".join(part for part in self.named if isinstance(part, str))


def leaves(value: Any, path: Path = (), named: Path = ()) -> Iterator[Leaf]:
    """Yield all values but empty ones. A list of numbers, also in lists, is one value."""
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
    """The values in statements, for lookups."""

    def __init__(self, quads: list[Quad]) -> None:
        terms = {
            term.value: isinstance(term, NamedNode)
            for quad in quads
            for term in (quad.subject, quad.object)
            if not isinstance(term, Triple)
        }
        values = {value.strip() for value in terms}
        self._values = values | {last_segment(value).lower() for value, is_iri in terms.items() if is_iri}
        self._text = "\n".join(values)
        self._searches = MOST_SEARCHED // (len(self._text) + 1)

    def has(self, value: Any) -> bool:
        """Return whether a statement has a value as it stands, at the end of an IRI, or in a longer text."""
        text = _as_text(value).strip()
        if text in self._values or text.lower() in self._values:
            return True
        if len(text) < _SHORT or isinstance(value, bool) or self._searches <= 0:
            return False
        self._searches -= 1
        return text in self._text


def _extras(mapping: RecordMapping, extras: Iterator[Leaf], record: str, catalogue: str) -> list[Quad]:
    graph = DcatStatements(catalogue, record)
    for leaf in extras:
        if leaf.field in mapping.dropped:
            continue
        keys = [segment(part) for part in leaf.named if isinstance(part, str)]
        predicate = NamedNode(FIELDS + ".".join([mapping.name, *keys]))
        graph.quads.append(Quad(_holder(graph, leaf.named), predicate, _literal(leaf.value)))
    return list(dict.fromkeys(graph.quads))


def _holder(graph: DcatStatements, path: Path) -> NamedNode:
    """Return the record, or its part that an item of a list is."""
    numbers = [place for place, part in enumerate(path[:-1]) if isinstance(part, int)]
    if not numbers:
        return graph.part()
    segments = [segment(str(part)) for part in path[: numbers[-1] + 1]]
    node = graph.part("source", *segments)
    graph.add(graph.part(), "dct:hasPart", node)
    return node


def _literal(value: Any) -> Literal:
    if isinstance(value, bool):
        return Literal(value)
    if isinstance(value, int):
        return typed(value, "integer")
    if isinstance(value, float):
        return typed(_as_text(value), "double")
    if isinstance(value, list):
        return Literal(_as_text(value), datatype=word("rdf:JSON"))
    return text_literal(str(value))


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return msgspec.json.encode(value).decode()


def _is_one_value(items: list[Any]) -> bool:
    """Return whether a list is data rather than a list of fields: coordinates, a box."""
    return (len(items) > 1 or (len(items) == 1 and isinstance(items[0], list))) and _is_numeric(items)


def _is_numeric(items: list[Any]) -> bool:
    return bool(items) and all(
        _is_numeric(each) if isinstance(each, list) else isinstance(each, int | float) for each in items
    )


def _name(value: Any) -> str | None:
    """Return the name of a field that is written as a name beside a value."""
    if isinstance(value, dict) and "value" in value:
        name = value.get("key", value.get("typeName"))
        return name if isinstance(name, str) and name else None
    return None


class _TrackedTable(dict[str, Any]):
    """A JSON object that records which of its values are read."""

    __slots__ = ("_path", "_read")

    def __init__(self, values: dict[str, Any], path: Path, read: set[Path]) -> None:
        super().__init__(values)
        self._path = path
        self._read = read

    def get(self, key: str, default: Any = None) -> Any:
        value = dict.get(self, key, default)
        return value if isinstance(value, dict) else self._note(key, value)

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
    """Read a value with all that is in it, such as a geometry."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value
