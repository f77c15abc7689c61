"""A dataset of Dataverse: as its search lists it, and as its own export describes it, with the files."""

from collections.abc import Iterator
from typing import Any

from tamias.harvesters.kit.descriptions import is_web
from tamias.harvesters.kit.records import count, table, tables, text, texts
from tamias.harvesters.kit.terms import below
from tamias.model.dataset import Agent, Dataset, Distribution, Period

_CHECKSUMS = ("MD5", "SHA-1", "SHA-256", "SHA-512")


def listed(item: Any, root: str) -> Dataset:
    """What the search says. Raises `ValueError` for an item without identifier."""
    item = table(item)
    identifier, address = text(item.get("global_id")), text(item.get("url"))
    if identifier is None:
        raise ValueError("it has no global_id")
    author = next(iter(texts(item.get("authors"))), None)
    publisher = text(item.get("publisher")) or text(item.get("name_of_dataverse"))
    contact = next((name for each in tables(item.get("contacts")) if (name := text(each.get("name")))), None)
    return Dataset(
        iri=_name(address, identifier, root),
        record=identifier,
        title=text(item.get("name")) or identifier,
        description=text(item.get("description")),
        identifiers=(identifier,),
        keywords=texts(item.get("keywords")),
        groups=texts(item.get("subjects")),
        landing_page=address if is_web(address) else None,
        publisher=Agent(name=publisher) if publisher else None,
        creator=Agent(name=author) if author else None,
        contact=Agent(name=contact) if contact else None,
        issued=text(item.get("published_at")),
        modified=text(item.get("updatedAt")),
        record_issued=text(item.get("createdAt")),
        record_modified=text(item.get("updatedAt")) or text(item.get("published_at")),
        spatial=tuple(_named_places(tables(item.get("geographicCoverage")))),
        version=_version(item.get("majorVersion"), item.get("minorVersion")),
    )


def exported(export: Any, identifier: str, root: str) -> Dataset:
    """What its export in Dataverse's own JSON says. Raises `ValueError` for one without a version."""
    export = table(export)
    export = table(export.get("data")) or export
    version = table(export.get("datasetVersion"))
    if not version:
        raise ValueError("its export has no datasetVersion")
    address, blocks = text(export.get("persistentUrl")), table(version.get("metadataBlocks"))
    said, where = _fields(blocks.get("citation")), _fields(blocks.get("geospatial"))
    licence = table(version.get("license"))
    author, contact = _parts(said, "author"), _parts(said, "datasetContact")
    publisher = text(export.get("publisher"))
    return Dataset(
        iri=_name(address, identifier, root),
        record=identifier,
        title=_text(said.get("title")) or identifier,
        description="\n\n".join(_all(said, "dsDescription", "dsDescriptionValue")) or None,
        identifiers=texts([identifier, *_all(said, "otherId", "otherIdValue")]),
        keywords=tuple(_all(said, "keyword", "keywordValue")),
        groups=texts(said.get("subject")),
        landing_page=address if is_web(address) else None,
        licence=text(licence.get("uri")) or text(licence.get("name")) or text(version.get("license")),
        rights=text(version.get("termsOfUse")),
        publisher=Agent(name=publisher) if publisher else None,
        creator=_agent(author, "authorName", None),
        contact=_agent(contact, "datasetContactName", "datasetContactEmail"),
        issued=text(export.get("publicationDate")) or text(version.get("releaseTime")),
        modified=text(version.get("lastUpdateTime")) or text(version.get("releaseTime")),
        record_issued=text(version.get("createTime")),
        record_modified=text(version.get("lastUpdateTime")) or text(version.get("releaseTime")),
        language=texts(said.get("language")),
        spatial=(*_boxes(where), *_named_places(_compounds(where, "geographicCoverage"))),
        temporal=tuple(_periods(said)),
        version=_version(version.get("versionNumber"), version.get("versionMinorNumber")),
        distributions=tuple(_files(version.get("files"), root)),
    )


def _name(address: str | None, identifier: str, root: str) -> str:
    return address if address and is_web(address) else below(root, identifier, "dataset").value


def _version(major: Any, minor: Any) -> str | None:
    numbers = (count(major), count(minor))
    return f"{numbers[0]}.{numbers[1] or 0}" if numbers[0] is not None else None


def _fields(block: Any) -> dict[str, Any]:
    """The values of a metadata block by the names of their types."""
    fields = tables(table(block).get("fields"))
    return {name: each.get("value") for each in fields if (name := text(each.get("typeName")))}


def _text(value: Any) -> str | None:
    """The text of a field, whether it stands there or in a field of its own."""
    return text(table(value).get("value")) or text(value)


def _compounds(said: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Each value of a compound field as plain texts by the names of its parts."""
    found = tables(said.get(name))
    return [{part: value for part in each if (value := _text(each[part]))} for each in found]


def _parts(said: dict[str, Any], name: str) -> dict[str, Any]:
    return next(iter(_compounds(said, name)), {})


def _all(said: dict[str, Any], name: str, part: str) -> Iterator[str]:
    yield from dict.fromkeys(each[part] for each in _compounds(said, name) if part in each)


def _agent(parts: dict[str, Any], name: str, email: str | None) -> Agent | None:
    address = parts.get(email) if email else None
    called = parts.get(name) or address
    return Agent(name=called, email=address) if called else None


def _named_places(places: list[dict[str, Any]]) -> Iterator[str]:
    for place in places:
        words = (text(place.get(part)) for part in ("city", "state", "country", "otherGeographicCoverage"))
        yield from filter(None, [", ".join(word for word in words if word)])


def _boxes(where: dict[str, Any]) -> Iterator[str]:
    for box in _compounds(where, "geographicBoundingBox"):
        east = box.get("eastLongitude")
        north = box.get("northLatitude") or box.get("northLongitude")
        west = box.get("westLongitude")
        south = box.get("southLatitude") or box.get("southLongitude")
        if east and north and west and south:
            yield f"POLYGON(({west} {south}, {east} {south}, {east} {north}, {west} {north}, {west} {south}))"


def _periods(said: dict[str, Any]) -> Iterator[Period]:
    for each in _compounds(said, "timePeriodCovered"):
        yield Period(each.get("timePeriodCoveredStart"), each.get("timePeriodCoveredEnd"))


def _files(files: Any, root: str) -> Iterator[Distribution]:
    for each in tables(files):
        file = table(each.get("dataFile"))
        number = count(file.get("id"))
        if number is None:
            continue
        folder, name = text(each.get("directoryLabel")), text(each.get("label")) or text(file.get("filename"))
        algorithm, value = _checksum(file)
        yield Distribution(
            url=f"{root}api/access/datafile/{number}",
            access_only=each.get("restricted") is True,
            title=f"{folder}/{name}" if folder and name else name,
            description=text(each.get("description")) or text(file.get("description")),
            media_type=text(file.get("contentType")),
            format=name.rpartition(".")[2] if name and "." in name else None,
            rights="restricted" if each.get("restricted") is True else None,
            byte_size=count(file.get("filesize")),
            sha256=value if algorithm == "SHA-256" else None,
            checksum=(algorithm, value) if value and algorithm != "SHA-256" else None,
            issued=text(file.get("publicationDate")) or text(file.get("creationDate")),
        )


def _checksum(file: dict[str, Any]) -> tuple[str, str | None]:
    told = table(file.get("checksum"))
    algorithm, value = text(told.get("type")) or "MD5", text(told.get("value")) or text(file.get("md5"))
    return algorithm, value if algorithm in _CHECKSUMS else None
