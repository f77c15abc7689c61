"""Records of OGC API Records and of STAC as datasets: both are GeoJSON features, collections or items."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from tamias.harvesters.mapping import RecordMapping, plain
from tamias.harvesters.records import (
    TITLES,
    count,
    first_agent,
    one_text,
    properties,
    table,
    tables,
    text,
    texts,
)
from tamias.harvesters.terms import sound_iri
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


def dataset_of(record: dict[str, Any], root: str) -> Dataset:
    """A record, an item or a collection. Raises `ValueError` for one without identifier."""
    key = text(record.get("id"))
    if key is None:
        raise ValueError("it has no identifier")
    said = table(record.get("properties")) or record
    page = _link(record, "self") or f"{root}#{key}"
    agents = list(_agents(said)) + (list(_agents(record)) if said is not record else [])
    return Dataset(
        iri=page,
        record=record_name(record),
        title=one_text(said.get("title")) or key,
        description=one_text(said.get("description")),
        identifiers=texts([key, *(text(each.get("value")) for each in tables(said.get("externalIds")))]),
        keywords=tuple(dict.fromkeys((*texts(said.get("keywords")), *texts(record.get("keywords"))))),
        groups=tuple(_concepts(said)),
        landing_page=_link(record, "canonical", "alternate"),
        licence=text(said.get("license")) or _link(record, "license"),
        rights=text(said.get("rights")),
        publisher=first_agent(agents, "dct:publisher"),
        issued=text(said.get("created")) or text(said.get("published")),
        modified=text(said.get("updated")),
        record_issued=text(record.get("created")),
        record_modified=text(said.get("updated")) or text(record.get("updated")),
        language=tuple(_languages(said)),
        spatial=tuple(_places(record)),
        temporal=tuple(_periods(record, said)),
        conforms_to=texts(record.get("stac_extensions")) + texts(record.get("conformsTo")),
        version=text(said.get("version")),
        distributions=tuple(_distributions(record)),
        agents=tuple(each for each in agents if each.property != "dct:publisher"),
        more=(
            *properties(said, TITLES),
            *(DcatProperty("dct:type", each) for each in texts(said.get("type")) if said is not record),
            *(DcatProperty("foaf:page", each) for each in _links(record, _PAGES)),
        ),
    )


def record_name(record: dict[str, Any]) -> str:
    """Unique in the catalogue: items of two collections may have the same identifier."""
    key, collection = text(record.get("id")) or "", text(record.get("collection"))
    return f"{collection}/{key}" if collection else key


def _link(record: dict[str, Any], *relations: str) -> str | None:
    return next(_links(record, frozenset(relations)), None)


def _links(record: dict[str, Any], relations: frozenset[str]) -> Iterator[str]:
    for each in tables(record.get("links")):
        address = text(each.get("href"))
        if text(each.get("rel")) in relations and address and sound_iri(address, web=True):
            yield address


def _concepts(said: dict[str, Any]) -> Iterator[str]:
    for theme in tables(said.get("themes")):
        for concept in tables(theme.get("concepts")):
            if name := text(concept.get("title")) or text(concept.get("id")):
                yield name


def _agents(said: dict[str, Any]) -> Iterator[AgentRole]:
    """Providers of STAC, contacts of OGC API Records."""
    for each in [*tables(said.get("providers")), *tables(said.get("contacts"))]:
        name = text(each.get("organization")) or text(each.get("name"))
        if name is None:
            continue
        email = next(iter(texts([one.get("value") for one in tables(each.get("emails"))])), None)
        home = text(each.get("url")) or next(
            (text(one.get("href")) for one in tables(each.get("links"))), None
        )
        agent = Agent(name=name, email=email, homepage=home)
        for role in texts(each.get("roles")) or ("contact",):
            yield AgentRole(property=_AGENTS.get(role.lower(), "dct:contributor"), agent=agent)


def _languages(said: dict[str, Any]) -> Iterator[str]:
    language = said.get("language")
    if code := text(language) or text(table(language).get("code")):
        yield code


def _places(record: dict[str, Any]) -> Iterator[str]:
    if geometry := table(record.get("geometry")):
        yield msgspec.json.encode(plain(geometry)).decode()
    boxes = table(table(record.get("extent")).get("spatial")).get("bbox")
    for box in boxes if isinstance(boxes, list) else []:
        numbers = texts(box)
        if isinstance(box, list) and len(box) in (4, 6) and numbers:
            half = len(box) // 2
            yield ",".join(str(plain(box)[place]) for place in (0, 1, half, half + 1))


def _periods(record: dict[str, Any], said: dict[str, Any]) -> Iterator[Period]:
    start, end = text(said.get("start_datetime")), text(said.get("end_datetime"))
    moment = text(said.get("datetime"))
    if start or end or moment:
        yield Period(start or moment, end or moment)
    interval = table(record.get("time")).get("interval")
    intervals = table(table(record.get("extent")).get("temporal")).get("interval")
    found = [interval, *(intervals if isinstance(intervals, list) else [])]
    for each in found:
        if isinstance(each, list) and len(each) == 2:
            ends = [None if one in (None, "..") else text(one) for one in each]
            if any(ends):
                yield Period(*ends)


def _distributions(record: dict[str, Any]) -> Iterator[Distribution]:
    """The assets of an item or a collection, and links to data."""
    for name, each in table(record.get("assets")).items():
        found = table(each)
        address = text(found.get("href"))
        if address and sound_iri(address, web=True):
            checksum = text(found.get("file:checksum"))
            yield Distribution(
                url=address,
                title=one_text(found.get("title")) or name,
                description=one_text(found.get("description")),
                media_type=text(found.get("type")),
                byte_size=count(found.get("file:size")),
                checksum=("multihash", checksum) if checksum else None,
                issued=text(found.get("created")),
                modified=text(found.get("updated")),
            )
    for each in tables(record.get("links")):
        address = text(each.get("href"))
        if text(each.get("rel")) in _DATA and address and sound_iri(address, web=True):
            yield Distribution(
                url=address,
                title=one_text(each.get("title")) or text(each.get("rel")),
                media_type=text(each.get("type")),
                byte_size=count(each.get("length")),
                modified=text(each.get("updated")),
            )


STAC_MAPPING: Final = RecordMapping("stac", dataset_of)
RECORDS_MAPPING: Final = RecordMapping("ogc-records", dataset_of)
