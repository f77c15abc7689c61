"""A record of InvenioRDM as a dataset: Zenodo's own form of JSON, and that of every other installation."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from tamias.harvesters.kit.descriptions import is_web
from tamias.harvesters.kit.records import count, table, tables, text, texts
from tamias.model.dataset import Agent, Dataset, Distribution, Period

_CREATIVE_COMMONS = re.compile(r"(?i)cc-(by(?:-nc)?(?:-nd|-sa)?)-([1-4]\.\d)")


def is_dataset(record: Any) -> bool:
    """Whether the record says that it is a dataset, or nothing of its kind."""
    metadata = table(table(record).get("metadata"))
    kind = table(metadata.get("resource_type"))
    said = text(kind.get("type")) or text(kind.get("id")) or text(metadata.get("resource_type"))
    return said is None or said.partition("-")[0].lower() == "dataset"


def dataset_of(record: Any, root: str) -> Dataset:
    """One record as a dataset. Raises `ValueError` for one without identifier or title."""
    record = table(record)
    metadata, number = table(record.get("metadata")), text(record.get("id"))
    title = text(metadata.get("title")) or text(record.get("title"))
    if number is None or title is None:
        raise ValueError("it has no identifier" if number is None else "it has no title")
    doi, page = _doi(record, metadata), _page(record, number, root)
    files = tuple(_files(record, number, root))
    return Dataset(
        iri=f"https://doi.org/{doi}" if doi else page,
        record=number,
        title=title,
        description=text(metadata.get("description")),
        identifiers=texts([doi, number]),
        keywords=tuple(_keywords(metadata)),
        landing_page=page,
        licence=_licence(metadata),
        access_rights=text(metadata.get("access_right")) or text(table(record.get("access")).get("files")),
        publisher=_publisher(metadata),
        creator=_person(metadata.get("creators")),
        contact=_contact(metadata),
        issued=text(metadata.get("publication_date")),
        modified=text(record.get("updated")) or text(record.get("modified")),
        record_issued=text(record.get("created")),
        record_modified=text(record.get("updated")) or text(record.get("modified")),
        language=_languages(metadata),
        spatial=tuple(_places(metadata)),
        temporal=tuple(_periods(metadata)),
        version=text(metadata.get("version")),
        distributions=files,
    )


def _doi(record: dict[str, Any], metadata: dict[str, Any]) -> str | None:
    pid = table(table(record.get("pids")).get("doi")).get("identifier")
    doi = text(record.get("doi")) or text(metadata.get("doi")) or text(pid)
    return doi if doi and is_web(f"https://doi.org/{doi}") else None


def _page(record: dict[str, Any], number: str, root: str) -> str:
    links = table(record.get("links"))
    found = (text(links.get(name)) for name in ("self_html", "html"))
    return next(filter(is_web, found), None) or f"{root}records/{quote(number, safe='')}"


def _keywords(metadata: dict[str, Any]) -> Iterator[str]:
    yield from texts(metadata.get("keywords"))
    for subject in tables(metadata.get("subjects")):
        yield from texts(subject.get("subject") or subject.get("term"))


def _licence(metadata: dict[str, Any]) -> str | None:
    """Its address, or its name; those of Creative Commons are known by their names."""
    for licence in (*tables(metadata.get("license")), *tables(metadata.get("rights"))):
        address = (
            text(table(licence.get("props")).get("url"))
            or text(licence.get("link"))
            or text(licence.get("url"))
        )
        name = text(licence.get("id")) or text(licence.get("title")) or _in_english(licence.get("title"))
        if address or name:
            return address or _licence_address(name or "")
    name = text(metadata.get("license"))
    return _licence_address(name) if name else None


def _licence_address(name: str) -> str:
    """The address of a licence by its short name; an unknown name as it stands.

    >>> _licence_address("cc-by-4.0"), _licence_address("other-open")
    ('https://creativecommons.org/licenses/by/4.0/', 'other-open')
    """
    if found := _CREATIVE_COMMONS.fullmatch(name):
        return f"https://creativecommons.org/licenses/{found[1].lower()}/{found[2]}/"
    is_zero = name.lower() in ("cc0-1.0", "cc-zero", "cc0")
    return "https://creativecommons.org/publicdomain/zero/1.0/" if is_zero else name


def _in_english(value: Any) -> str | None:
    words = table(value)
    return text(words.get("en")) or next(filter(None, map(text, words.values())), None)


def _publisher(metadata: dict[str, Any]) -> Agent | None:
    name = text(metadata.get("publisher"))
    return Agent(name=name) if name else None


def _person(value: Any) -> Agent | None:
    for creator in tables(value):
        person = table(creator.get("person_or_org")) or creator
        name, orcid = text(person.get("name")), text(person.get("orcid"))
        for each in tables(person.get("identifiers")):
            orcid = text(each.get("identifier")) if each.get("scheme") == "orcid" else orcid
        if name:
            return Agent(name=name, iri=f"https://orcid.org/{orcid}" if orcid else None)
    return None


def _contact(metadata: dict[str, Any]) -> Agent | None:
    for person in tables(metadata.get("contributors")):
        role = text(person.get("type")) or text(table(person.get("role")).get("id")) or ""
        if role.lower().replace(" ", "") == "contactperson":
            return _person(person)
    return None


def _languages(metadata: dict[str, Any]) -> tuple[str, ...]:
    return texts([metadata.get("language"), *(each.get("id") for each in tables(metadata.get("languages")))])


def _places(metadata: dict[str, Any]) -> Iterator[str]:
    native = [
        each for feature in tables(metadata.get("locations")) for each in tables(feature.get("features"))
    ]
    for location in native or tables(metadata.get("locations")):
        east, north = text(location.get("lon")), text(location.get("lat"))
        if east and north:
            yield f"POINT({east} {north})"
        yield from texts(location.get("place"))


def _periods(metadata: dict[str, Any]) -> Iterator[Period]:
    for each in tables(metadata.get("dates")):
        kind = text(each.get("type")) or text(table(each.get("type")).get("id")) or ""
        if kind.lower() in ("collected", "valid"):
            whole = (text(each.get("date")) or "").partition("/")
            start = text(each.get("start")) or whole[0].strip() or None
            end = text(each.get("end")) or whole[2].strip() or None
            if start or end:
                yield Period(start, end)


def _files(record: dict[str, Any], number: str, root: str) -> Iterator[Distribution]:
    files = record.get("files")
    entries = table(files).get("entries")
    found = list(table(entries).values()) if isinstance(entries, dict) else entries or files
    for each in tables(found):
        name = text(each.get("key")) or text(each.get("filename"))
        links = table(each.get("links"))
        own = f"{root}api/records/{quote(number, safe='')}/files/{quote(name or '', safe='')}/content"
        url = text(links.get("content")) or text(links.get("self")) or (own if name else None)
        if url is None or not (name or is_web(url)):
            continue
        yield Distribution(
            url=url,
            title=name,
            media_type=text(each.get("mimetype")),
            format=name.rpartition(".")[2] if name and "." in name else None,
            byte_size=count(each.get("size"))
            if each.get("size") is not None
            else count(each.get("filesize")),
            **_checksums(text(each.get("checksum"))),
        )


def _checksums(checksum: str | None) -> dict[str, Any]:
    """A checksum such as `md5:…`; without a word before it, it is an MD5."""
    algorithm, colon, value = (checksum or "").rpartition(":")
    if not value:
        return {}
    algorithm = algorithm.lower().replace("-", "") if colon else "md5"
    return {"sha256": value} if algorithm == "sha256" else {"checksum": (algorithm, value)}
