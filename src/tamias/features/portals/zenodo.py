"""Harvester for Zenodo and any other InvenioRDM: its search, in slices of time where it ends after 10,000."""

import re
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from functools import partial
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from tamias.features.dcat.datasets.descriptions import is_web
from tamias.features.dcat.datasets.mapping import RecordMapping
from tamias.features.dcat.datasets.records import (
    TITLES,
    checksum,
    count,
    one_text,
    table,
    tables,
    text,
    texts,
)
from tamias.features.portals.fields import Fields, at, terms
from tamias.features.portals.paging.listing import ChangeOrder, PortalListing, RecordPage, ask_json
from tamias.features.portals.paging.position import Position
from tamias.features.portals.paging.ways import Portal, at_root
from tamias.model.dataset import Agent, AgentRole, Dataset, DcatProperty, Distribution, Period
from tamias.model.finding import HarvestEnd
from tamias.protocols import PoliteClient

WINDOW = 10_000
"""Records that one search gives away, however many it finds."""
PAGE_RECORDS = 25
"""What Zenodo gives to those who are not signed in; others give more, but this too."""
_INNER = ("api", "records", "record", "search", "communities", "oai2d")


def _address(place: Position, start: int, size: int) -> tuple[str, int]:
    """Return a page, oldest first. Beyond the search's end it is of those from the last day on."""
    number = start // size
    conditions = [f"created:[{place.window} TO *]"] if place.window else []
    if place.since:
        conditions.append(f'updated:["{place.since[:19]}Z" TO *]')
    query = {"type": "dataset", "size": size, "page": number + 1, "sort": "oldest"}
    if conditions:
        query["q"] = " AND ".join(conditions)
    return f"{place.root}api/records?{urlencode(query)}", number * size


def _window(place: Position) -> str:
    """Return the day of the last record; of a day with more than one search gives, the rest is missed."""
    day = place.after[:10]
    return day if day > place.window else (date.fromisoformat(day) + timedelta(days=1)).isoformat()


def _page(body: bytes) -> RecordPage:
    hits = table(msgspec.json.decode(body)).get("hits")
    if not isinstance(hits, dict):
        raise ValueError(f"no list of records: {hits}"[:500])
    found = hits.get("hits")
    total = count(hits.get("total")) or count(table(hits.get("total")).get("value")) or 0
    return RecordPage(found if isinstance(found, list) else [], total)


def _stamp(record: Any) -> str | None:
    said = table(record)
    return text(said.get("updated")) or text(said.get("modified"))


async def _replaced(place: Position, client: PoliteClient, record: Any) -> list[str] | HarvestEnd:
    """Find versions that a new one replaced: the search lists the latest of each record only."""
    said, own = table(record), text(table(record).get("id"))
    relations = tables(table(table(said.get("metadata")).get("relations")).get("version"))
    numbers = [count(each.get("index")) for each in (table(said.get("versions")), *relations)]
    # InvenioRDM counts versions from 1, Zenodo's own form of records from 0.
    if not own or not ((numbers[0] or 0) > 1 or any((number or 0) > 0 for number in numbers[1:])):
        return []
    url = f"{place.root}api/records/{quote(own, safe='')}/versions?size=25"
    page = await ask_json(place, client, url, _page, "Zenodo")
    if isinstance(page, HarvestEnd):
        return page
    names = (text(table(each).get("id")) for each in page.records)
    return [name for name in names if name and name != own]


_RELATIONS: Final = {
    "iscitedby": "dct:isReferencedBy",
    "isreferencedby": "dct:isReferencedBy",
    "cites": "dct:references",
    "references": "dct:references",
    "isversionof": "dct:isVersionOf",
    "hasversion": "dcat:hasVersion",
    "isnewversionof": "dcat:previousVersion",
    "ispartof": "dct:isPartOf",
    "isderivedfrom": "prov:wasDerivedFrom",
    "isdocumentedby": "foaf:page",
    "obsoletes": "dct:replaces",
    "isobsoletedby": "dct:isReplacedBy",
}
_CREATIVE_COMMONS = re.compile(r"(?i)cc-(by(?:-nc)?(?:-nd|-sa)?)-([1-4]\.\d)")


def is_dataset(record: Any) -> bool:
    """Return whether the kind of a record is dataset, or none."""
    metadata = table(table(record).get("metadata"))
    kind = table(metadata.get("resource_type"))
    said = text(kind.get("type")) or text(kind.get("id")) or text(metadata.get("resource_type"))
    return said is None or said.partition("-")[0].lower() == "dataset"


Context = Mapping[str, str]


def _licence(metadata: dict[str, Any], _: Context) -> str | None:
    """Return the address of the licence, or its name."""
    for found in (*tables(metadata.get("license")), *tables(metadata.get("rights"))):
        props = text(table(found.get("props")).get("url"))
        name = text(found.get("id")) or one_text(found.get("title"))
        if address := props or text(found.get("link")) or text(found.get("url")) or _licence_address(name):
            return address
    return _licence_address(text(metadata.get("license")))


def _licence_address(name: str | None) -> str | None:
    """Return the address of a licence by its short name; an unknown name as it stands.

    >>> _licence_address("cc-by-4.0"), _licence_address("other-open")
    ('https://creativecommons.org/licenses/by/4.0/', 'other-open')
    """
    if found := _CREATIVE_COMMONS.fullmatch(name or ""):
        return f"https://creativecommons.org/licenses/{found[1].lower()}/{found[2]}/"
    is_zero = name is not None and name.lower() in ("cc0-1.0", "cc-zero", "cc0")
    return "https://creativecommons.org/publicdomain/zero/1.0/" if is_zero else name


def _orcid(person: dict[str, Any], _: Context) -> str | None:
    said = table(person.get("person_or_org")) or person
    found = [
        text(said.get("orcid")),
        *(
            text(each.get("identifier"))
            for each in tables(said.get("identifiers"))
            if each.get("scheme") == "orcid"
        ),
    ]
    return f"https://orcid.org/{found[-1]}" if found[-1] else None


def _is_contact(person: dict[str, Any]) -> bool:
    role = text(person.get("type")) or text(table(person.get("role")).get("id")) or ""
    return role.lower().replace(" ", "") == "contactperson"


def _more(metadata: dict[str, Any], _: Context) -> Iterator[DcatProperty]:
    """Titles and descriptions in more languages, and what the record is related to."""
    for field, value, name in (
        ("additional_titles", "title", "dct:alternative"),
        ("additional_descriptions", "description", "dct:description"),
    ):
        for each in tables(metadata.get(field)):
            language = text(table(each.get("lang")).get("id"))
            yield from (DcatProperty(name, one, language) for one in texts(each.get(value)))
    for each in tables(metadata.get("related_identifiers")):
        kind = text(each.get("relation")) or text(table(each.get("relation_type")).get("id")) or ""
        is_doi = (text(each.get("scheme")) or "").lower() == "doi"
        for one in texts(each.get("identifier")):
            target = f"https://doi.org/{one}" if is_doi and "://" not in one else one
            yield DcatProperty(_RELATIONS.get(kind.lower(), "dct:relation"), target)
    for each in tables(metadata.get("references")):
        yield from (DcatProperty("dct:references", one) for one in texts(each.get("reference")))


def _places(metadata: dict[str, Any], _: Context) -> Iterator[str]:
    found = tables(metadata.get("locations"))
    for place in [each for feature in found for each in tables(feature.get("features"))] or found:
        east, north = text(place.get("lon")), text(place.get("lat"))
        if east and north:
            yield f"POINT({east} {north})"
        yield from texts(place.get("place"))


def _side(number: int, name: str) -> Any:
    """Make a rule for one end of a period, which may be written as `START/END`."""
    return lambda said, _: (
        text(said.get(name)) or (text(said.get("date")) or "").partition("/")[number].strip() or None
    )


def _is_covered(said: dict[str, Any]) -> bool:
    kind = text(said.get("type")) or text(table(said.get("type")).get("id")) or ""
    return kind.lower() in ("collected", "valid")


def _files(record: dict[str, Any], context: Context) -> Iterator[Distribution]:
    files = record.get("files")
    entries = table(files).get("entries")
    found = list(table(entries).values()) if isinstance(entries, dict) else entries or files
    for each in tables(found):
        key = quote(text(each.get("key")) or text(each.get("filename")) or "", safe="")
        yield from _FILE.all(each, {**context, "file": key})


def _checked(said: dict[str, Any], _: Context) -> dict[str, Any]:
    """A checksum such as `md5:…`; without a word before it, it is an MD5."""
    name = text(said.get("key")) or text(said.get("filename"))
    algorithm, colon, value = (text(said.get("checksum")) or "").rpartition(":")
    form = {"format": name.rpartition(".")[2]} if name and "." in name else {}
    return checksum(algorithm.lower().replace("-", "") if colon else "md5", value) | form


_PERSON: Final[dict[str, Any]] = {"name": "person_or_org.name name", "iri": _orcid}
_FILE: Final = Fields(
    Distribution, also=_checked,
    url="links.content links.self {root}api/records/{number}/files/{file}/content", title="key filename",
    media_type="mimetype", byte_size="size filesize",
)  # fmt: skip
_RECORD: Final = Fields(
    Dataset,
    iri="{doi} {page}", record="id", title="metadata.title title", description="metadata.description",
    identifiers="{own_doi} id", keywords="metadata.keywords metadata.subjects.subject|metadata.subjects.term",
    landing_page="{page}", access_rights="metadata.access_right access.files",
    licence=lambda record, context: _licence(table(record.get("metadata")), context),
    publisher=Fields(Agent, name="metadata.publisher"),
    creator=Fields(Agent, "metadata.creators", **_PERSON),
    contact=Fields(Agent, "metadata.contributors", when=_is_contact, **_PERSON),
    issued="metadata.publication_date", modified="updated modified", record_issued="created",
    record_modified="updated modified", language="metadata.language metadata.languages.id",
    spatial=lambda record, context: _places(table(record.get("metadata")), context),
    version="metadata.version",
    temporal=Fields(Period, "metadata.dates", when=_is_covered, start=_side(0, "start"), end=_side(2, "end")),
    distributions=_files,
    agents=(
        Fields(
            AgentRole, "metadata.creators", after=1, property="=dct:creator", agent=Fields(Agent, **_PERSON)
        ),
        Fields(
            AgentRole, "metadata.contributors", when=lambda each: not _is_contact(each),
            property="=dct:contributor", agent=Fields(Agent, **_PERSON),
        ),
    ),
    more=(
        terms(TITLES, path="metadata"),
        lambda record, context: _more(table(record.get("metadata")), context),
        terms({}, {"references": "dct:references", "notes": "adms:versionNotes"}, "metadata"),
    ),
)  # fmt: skip


def dataset_of(record: Any, root: str) -> Dataset:
    """Read a record as a dataset. Raise `ValueError` for one without identifier or title."""
    number = quote(text(table(record).get("id")) or "", safe="")
    doi = next(filter(None, (text(each) for name in _DOIS for each in at(record, name))), None)
    links = table(table(record).get("links"))
    pages = (text(links.get(name)) for name in ("self_html", "html"))
    address = f"https://doi.org/{doi}" if doi and is_web(f"https://doi.org/{doi}") else ""
    return _RECORD.of(
        table(record), root, number=number, doi=address, own_doi=doi if address and doi else "",
        page=next(filter(is_web, pages), None) or f"{root}records/{number}",
    )  # fmt: skip


_DOIS: Final = (("doi",), ("metadata", "doi"), ("pids", "doi", "identifier"))


MAPPING: Final = RecordMapping(
    "zenodo",
    dataset_of,
    volatile={
        "stats": "views and downloads, counted by the repository",
        "revision": "counts changes, also those of the repository itself",
    },
)

LISTING: Final = PortalListing(
    name="Zenodo",
    mapping=MAPPING,
    address=_address,
    page=_page,
    is_dataset=is_dataset,
    replaced=_replaced,
    key=lambda record: text(record.get("created")) or "",
    name_of=lambda record: str(record["id"]),
    order=ChangeOrder("updated", _stamp),
    largest=PAGE_RECORDS,
    any_offset=False,
    pages=True,
    deepest=WINDOW,
    window=_window,
)
ZenodoHarvester = partial(Portal, "zenodo", at_root(*_INNER), {"": LISTING})
