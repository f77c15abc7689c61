"""Records of OGC API Records and of STAC as datasets: both are GeoJSON features, collections or items."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tamias.features.dcat.datasets.mapping import RecordMapping, plain
from tamias.features.dcat.datasets.records import (
    TITLES,
    first_agent,
    properties,
    table,
    tables,
    text,
    texts,
    web,
)
from tamias.features.portals.fields import Fields, each_of, terms
from tamias.model.dataset import Agent, AgentRole, Dataset, DcatProperty, Distribution, Period

_DATA: Final = frozenset({"enclosure", "data", "item", "items", "download", "service", "preview"})
"""Relations of links that lead to data; links of a record lead to many other things."""
_PAGES: Final = frozenset({"about", "describes", "alternate", "related", "describedby", "via", "cite-as"})
_AGENTS: Final = {
    "publisher": "dct:publisher",
    "creator": "dct:creator",
    "producer": "dct:creator",
    "author": "dct:creator",
    "host": "dct:contributor",
    "processor": "dct:contributor",
    "licensor": "dct:contributor",
    "contributor": "dct:contributor",
    "pointofcontact": "dcat:contactPoint",
    "contact": "dcat:contactPoint",
}


Context = Mapping[str, str]


def record_name(record: dict[str, Any]) -> str:
    """Unique in the catalogue: items of two collections may have the same identifier."""
    key, collection = text(record.get("id")) or "", text(record.get("collection"))
    return f"{collection}/{key}" if collection else key


def _links(relations: frozenset[str]) -> Any:
    """Make a rule for the links of some relations."""

    def find(record: dict[str, Any], _: Context) -> Iterator[str]:
        for each in tables(record.get("links")):
            if text(each.get("rel")) in relations and (address := web(each.get("href"))):
                yield address

    return find


def _link(*relations: str) -> Any:
    find = _links(frozenset(relations))
    return lambda record, context: next(find(record, context), None)


def _agents(record: dict[str, Any], _: Context) -> list[AgentRole]:
    """Providers of STAC, contacts of OGC API Records, of an item or a collection."""
    said = table(record.get("properties")) or record
    return [*_agents_of(said), *(_agents_of(record) if said is not record else ())]


def _agents_of(said: dict[str, Any]) -> Iterator[AgentRole]:
    for each in [*tables(said.get("providers")), *tables(said.get("contacts"))]:
        if agent := _AGENT.read(each, {}):
            for role in texts(each.get("roles")) or ("contact",):
                yield AgentRole(property=_AGENTS.get(role.lower(), "dct:contributor"), agent=agent)


_AGENT: Final = Fields(
    Agent, name="organization name", email="emails.value", homepage="url>text links.href>text"
)


def _boxes(record: dict[str, Any], _: Context) -> Iterator[str]:
    boxes = table(table(record.get("extent")).get("spatial")).get("bbox")
    for box in boxes if isinstance(boxes, list) else []:
        if isinstance(box, list) and len(box) in (4, 6) and texts(box):
            half = len(box) // 2
            yield ",".join(str(plain(box)[place]) for place in (0, 1, half, half + 1))


def _intervals(record: dict[str, Any], _: Context) -> Iterator[Period]:
    intervals = table(table(record.get("extent")).get("temporal")).get("interval")
    found = [table(record.get("time")).get("interval"), *(intervals if isinstance(intervals, list) else [])]
    for each in found:
        if isinstance(each, list) and len(each) == 2:
            ends = [None if one in (None, "..") else text(one) for one in each]
            if any(ends):
                yield Period(*ends)


def _period(path: str) -> Fields[Period]:
    return Fields(Period, path, start="start_datetime datetime", end="end_datetime datetime")


def _assets(record: dict[str, Any], context: Context) -> Iterator[Distribution]:
    for name, found in table(record.get("assets")).items():
        yield from _ASSET.all(table(found), {**context, "name": name})


def _multihash(asset: dict[str, Any], _: Context) -> dict[str, Any]:
    digits = text(asset.get("file:checksum"))
    return {"checksum": ("multihash", digits)} if digits else {}


_PAGE_LINKS: Final = _links(_PAGES)
_ASSET: Final = Fields(
    Distribution, also=_multihash,
    url="href>web", title="title {name}", description="description", media_type="type",
    byte_size="file:size", issued="created", modified="updated",
)  # fmt: skip
_DATASET: Final = Fields(
    Dataset,
    iri=(_link("self"), "{root}#{id}"), record="{name}",
    title="properties.title title id", description="properties.description description",
    identifiers="id properties.externalIds.value externalIds.value", keywords="properties.keywords keywords",
    groups=(each_of("properties.themes.concepts", "title id"), each_of("themes.concepts", "title id")),
    landing_page=_link("canonical", "alternate"),
    licence=("properties.license license", _link("license")), rights="properties.rights rights",
    publisher=lambda record, context: first_agent(_agents(record, context), "dct:publisher"),
    issued="properties.created properties.published created published", modified="properties.updated updated",
    record_issued="created", record_modified="properties.updated updated",
    language="properties.language|properties.language.code|language|language.code",
    spatial=("geometry>shape", _boxes), temporal=(_period("properties"), _period(""), _intervals),
    conforms_to="stac_extensions conformsTo", version="properties.version version",
    distributions=(
        _assets,
        Fields(
            Distribution, "links", when=lambda link: text(link.get("rel")) in _DATA,
            url="href>web", title="title rel", media_type="type", byte_size="length", modified="updated",
        ),
    ),
    agents=lambda record, context: (
        each for each in _agents(record, context) if each.property != "dct:publisher"
    ),
    more=(
        lambda record, _: properties(table(record.get("properties")) or record, TITLES),
        terms({}, {"type": "dct:type"}, "properties"),
        lambda record, context: (DcatProperty("foaf:page", one) for one in _PAGE_LINKS(record, context)),
    ),
)  # fmt: skip


def dataset_of(record: dict[str, Any], root: str) -> Dataset:
    """A record, an item or a collection. Raise `ValueError` for one without identifier."""
    return _DATASET.of(record, root, name=record_name(record))


STAC_MAPPING: Final = RecordMapping("stac", dataset_of)
RECORDS_MAPPING: Final = RecordMapping("ogc-records", dataset_of)
