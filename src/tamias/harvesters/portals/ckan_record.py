"""A CKAN package as a dataset: what stands at the top, in its extras, its organisation and its resources."""

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from tamias.harvesters.kit.records import count, table, tables, text, texts
from tamias.harvesters.kit.terms import sound_iri
from tamias.model.dataset import Agent, Dataset, Distribution, Period

_SERVICES: Final = frozenset({"csw", "sparql", "wcs", "wfs", "wms", "wmts"})
_DIGESTS: Final = {32: "md5", 40: "sha1", 64: "sha256", 128: "sha512"}


def dataset_of(package: dict[str, Any], root: str) -> Dataset:
    """The dataset. Raises `ValueError` for a package without an identifier."""
    own = text(package.get("id")) or text(package.get("name"))
    if own is None:
        raise ValueError("it has neither id nor name")
    fields = _Fields(package)
    page = f"{root}dataset/{own}"
    return Dataset(
        iri=_iri(fields.text("uri")) or page,
        record=own,
        title=fields.text("title", "title_translated") or text(package.get("name")) or own,
        description=fields.text("notes", "notes_translated", "description"),
        identifiers=texts([fields.text("identifier", "guid") or own]),
        keywords=tuple(_keywords(package)),
        themes=tuple(theme for theme in fields.texts("theme") if _iri(theme)),
        groups=tuple(_groups(package)),
        landing_page=_page(text(package.get("url"))) or f"{root}dataset/{text(package.get('name')) or own}",
        licence=_page(text(package.get("license_url"))) or fields.text("license_title", "license_id"),
        rights=fields.text("rights"),
        access_rights=fields.text("access_rights"),
        publisher=_publisher(fields, root),
        creator=_agent(fields.text("author"), fields.text("author_email")),
        contact=_contact(fields),
        issued=fields.text("issued", "metadata_created"),
        modified=fields.text("modified", "metadata_modified"),
        record_issued=text(package.get("metadata_created")),
        record_modified=text(package.get("metadata_modified")),
        frequency=fields.text("frequency", "accrual_periodicity", "update_frequency"),
        language=fields.texts("language"),
        spatial=tuple(_places(fields)),
        temporal=tuple(_periods(fields)),
        version=fields.text("version", "dcat_version"),
        provenance=fields.text("provenance"),
        conforms_to=fields.texts("conforms_to"),
        distributions=tuple(_distributions(package, page)),
    )


class _Fields:
    """The package's own fields and its extras under one roof: schemas put the same thing here or there."""

    def __init__(self, package: dict[str, Any]) -> None:
        extras = package.get("extras")
        self._values = (
            dict(extras)
            if isinstance(extras, dict)
            else {str(each.get("key")): each.get("value") for each in tables(extras)}
        )
        self._values.update((key, value) for key, value in package.items() if value not in (None, "", [], {}))

    def text(self, *names: str) -> str | None:
        """The first of these fields that says something."""
        return next((found for name in names if (found := one_text(self._values.get(name)))), None)

    def table(self, name: str) -> dict[str, Any]:
        """A field that is an object."""
        return table(self._values.get(name))

    def texts(self, name: str) -> tuple[str, ...]:
        """A field's texts, be it a list, a list in JSON, or divided by commas."""
        return several(self._values.get(name))


def one_text(value: Any) -> str | None:
    """A text; of several languages the English one, else the first.

    >>> one_text({"de": "Baum", "en": "Tree"}), one_text(["a"]), one_text(" ")
    ('Tree', None, None)
    """
    if isinstance(value, dict):
        return text(value.get("en")) or next(filter(None, map(text, value.values())), None)
    return text(value)


def several(value: Any) -> tuple[str, ...]:
    """The texts of a list, of a list written as JSON, or between commas.

    >>> several('["a", "b"]'), several("a, b"), several(["a"]), several("{a,b}")
    (('a', 'b'), ('a', 'b'), ('a',), ('a', 'b'))
    """
    if not isinstance(value, str):
        return texts(value)
    if value.lstrip().startswith("["):
        try:
            return texts(msgspec.json.decode(value.encode("utf-8", "replace")))
        except (msgspec.DecodeError, RecursionError):
            pass
    return texts(value.strip("{}").split(","))


def checksum_of(value: str | None) -> tuple[str, str] | None:
    """The algorithm and digits of a hash, told by its prefix or by its length.

    >>> checksum_of("sha1:" + "0" * 40)[0], checksum_of("f" * 32)[0], checksum_of("v2")
    ('sha1', 'md5', None)
    """
    found = re.fullmatch(r"(?:([A-Za-z0-9-]{2,12}):)?([0-9A-Fa-f]{32,128})", value or "")
    if found is None or not (found[1] or len(found[2]) in _DIGESTS):
        return None
    return found[1] or _DIGESTS[len(found[2])], found[2]


def _iri(value: str | None) -> str | None:
    return value if sound_iri(value) else None


def _page(value: str | None) -> str | None:
    return value if sound_iri(value, web=True) else None


def _keywords(package: dict[str, Any]) -> Iterator[str]:
    for tag in package.get("tags") or () if isinstance(package.get("tags"), list) else ():
        word = text(table(tag).get("display_name")) or text(table(tag).get("name")) or text(tag)
        if word:
            yield word


def _groups(package: dict[str, Any]) -> Iterator[str]:
    for group in tables(package.get("groups")):
        if name := one_text(group.get("title")) or text(group.get("display_name")) or text(group.get("name")):
            yield name


def _publisher(fields: _Fields, root: str) -> Agent | None:
    """The publisher that the extras name, else the organisation; its IRI is the organisation's."""
    organisation = fields.table("organization")
    name = one_text(organisation.get("title")) or text(organisation.get("name"))
    key = text(organisation.get("id")) or text(organisation.get("name"))
    said = fields.text("publisher_name")
    if not (said or name):
        return None
    return Agent(
        name=said or name or "",
        iri=_iri(fields.text("publisher_uri")) or (f"{root}organization/{key}" if key and not said else None),
        email=fields.text("publisher_email"),
        homepage=_page(fields.text("publisher_url")),
        kind=_iri(fields.text("publisher_type")),
    )


def _agent(name: str | None, email: str | None, iri: str | None = None) -> Agent | None:
    return Agent(name=name or email or "", email=email, iri=iri) if name or email else None


def _contact(fields: _Fields) -> Agent | None:
    return _agent(
        fields.text("contact_name", "maintainer", "author"),
        fields.text("contact_email", "maintainer_email", "author_email"),
        _iri(fields.text("contact_uri")),
    )


def _places(fields: _Fields) -> Iterator[str]:
    found = (fields.text(name) for name in ("spatial_uri", "spatial", "spatial_text"))
    yield from dict.fromkeys(place for place in found if place)


def _periods(fields: _Fields) -> Iterator[Period]:
    start = fields.text("temporal_start", "temporal_coverage_from", "temporal_coverage-from")
    end = fields.text("temporal_end", "temporal_coverage_to", "temporal_coverage-to")
    if start or end:
        yield Period(start, end)


def _distributions(package: dict[str, Any], page: str) -> Iterator[Distribution]:
    for resource in tables(package.get("resources")):
        url, key = text(resource.get("url")), text(resource.get("id"))
        if url is None:
            continue
        form = text(resource.get("format"))
        kind = service_kind(form, url)
        name, digits = checksum_of(text(resource.get("hash"))) or (None, None)
        yield Distribution(
            url=url,
            iri=_iri(text(resource.get("uri"))) or (f"{page}/resource/{key}" if key else None),
            title=one_text(resource.get("name")),
            description=one_text(resource.get("description")),
            media_type=text(resource.get("mimetype")),
            format=form,
            licence=_page(text(resource.get("license"))) or text(resource.get("license")),
            rights=text(resource.get("rights")),
            byte_size=count(resource.get("size")),
            sha256=digits if name == "sha256" else None,
            checksum=(name, digits) if name and digits and name != "sha256" else None,
            issued=text(resource.get("issued")) or text(resource.get("created")),
            modified=text(resource.get("modified")) or text(resource.get("last_modified")),
            language=several(resource.get("language")),
            conforms_to=several(resource.get("conforms_to")),
            service=url if kind else None,
            service_kind=kind,
        )


def service_kind(form: str | None, url: str) -> str | None:
    """The kind of service that a format's name or an address speaks of.

    >>> service_kind("api/sparql", "https://example.org/"), service_kind("CSV", "https://example.org/a.csv")
    ('sparql', None)
    """
    word = (form or "").lower().removeprefix("api/").removeprefix("ogc ").removeprefix("ogc:")
    if word in _SERVICES:
        return word
    return "sparql" if url.partition("?")[0].rstrip("/").lower().endswith("/sparql") else None
