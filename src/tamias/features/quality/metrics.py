"""Metrics of one description: Portal Watch's, each from 0 to 1, and the points of the European MQA.

What was claimed is noted in the database, what was got is read, what is measured is stored. Subjects of
measures are resources by their ids, descriptions by `record_id`, and catalogues by their URLs.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from tamias.archive.blobs import BlobReader
from tamias.content.formats import media_type_of
from tamias.database.columns import storable
from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.features.dcat.datasets.terms import day_or_moment
from tamias.features.dcat.measures import record_id
from tamias.features.quality.formats import (
    is_known_licence,
    is_machine_readable,
    is_open,
    is_open_licence,
    is_registered,
    promised_type,
    same_format,
)
from tamias.model.dataset import Agent, Dataset, Distribution
from tamias.model.errors import UrlError
from tamias.model.resource import resource_id
from tamias.model.url import url_key
from tamias.settings import Settings

_LONGEST = 500
_HVD_REGULATION: Final = "/eli/reg_impl/2023/138/oj"


class ClaimedForm(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A claimed form of the dataset."""

    url: str
    download: bool = True
    """Whether the address is said to be that of the data, and not of a page about them."""
    media_type: str | None = None
    format: str | None = None
    licence: str | None = None
    """The dataset's own where the form names none."""
    rights: bool = False
    byte_size: int | None = None
    issued: str | None = None
    modified: str | None = None


class ClaimedDescription(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The parts that a description has, and the texts of those that are examined."""

    title: bool = False
    description: bool = False
    keywords: bool = False
    themes: bool = False
    spatial: bool = False
    temporal: bool = False
    publisher: bool = False
    publisher_name: str | None = None
    about: str | None = None
    """The beginning of the description; searches find both."""
    contact: bool = False
    emails: tuple[str, ...] = ()
    """Of the contact and the publisher, as they stand."""
    pages: tuple[str, ...] = ()
    """Of the same."""
    issued: str | None = None
    modified: str | None = None
    access_rights: str | None = None
    forms: tuple[ClaimedForm, ...] = ()
    hvd: tuple[str, ...] = ()
    """The categories of a high-value dataset, or the regulation that it falls under."""


def claims_of(dataset: Dataset) -> ClaimedDescription:
    """Return the claims of a description."""
    agents = [agent for agent in (dataset.contact, dataset.publisher) if agent is not None]
    return ClaimedDescription(
        title=_said(dataset.title),
        description=_said(dataset.description),
        keywords=any(map(_said, dataset.keywords)),
        themes=any(map(_said, dataset.themes + dataset.groups)),
        spatial=any(map(_said, dataset.spatial)),
        temporal=any(_said(period.start) or _said(period.end) for period in dataset.temporal),
        publisher=_somebody(dataset.publisher),
        publisher_name=_text(dataset.publisher.name) if dataset.publisher else None,
        about=_text(dataset.description),
        contact=_somebody(dataset.contact),
        emails=_texts(agent.email for agent in agents),
        pages=_texts(agent.homepage for agent in agents),
        issued=_text(dataset.issued),
        modified=_text(dataset.modified),
        access_rights=_text(dataset.access_rights),
        forms=tuple(_form(form, dataset) for form in dataset.distributions),
        hvd=tuple(
            storable(each.value[:_LONGEST]) or ""
            for each in (*dataset.more, *(each for form in dataset.distributions for each in form.more))
            if each.name == "dcatap:hvdCategory" or each.value.endswith(_HVD_REGULATION)
        ),
    )


def _form(form: Distribution, dataset: Dataset) -> ClaimedForm:
    return ClaimedForm(
        url=storable(form.url) or "",
        download=not form.access_only and form.service is None,
        media_type=_text(form.media_type),
        format=_text(form.format),
        licence=_text(form.licence) or _text(dataset.licence),
        rights=_said(form.rights) or _said(dataset.rights),
        byte_size=form.byte_size if form.byte_size is not None and 0 <= form.byte_size < 2**63 else None,
        issued=_text(form.issued),
        modified=_text(form.modified),
    )


def _somebody(agent: Agent | None) -> bool:
    return agent is not None and any(map(_said, (agent.name, agent.iri, agent.email, agent.homepage)))


def _said(text: str | None) -> bool:
    return bool(text and text.strip())


def _text(text: str | None) -> str | None:
    """A text that can be kept, cut to what any check needs; None for an empty one."""
    return storable((text or "").strip()[:_LONGEST]) or None


def _texts(texts: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(filter(None, map(_text, texts)))


SIZE_TOLERANCE: Final = 0.01
"""Told sizes are often rounded: so much may be missing."""


class Got(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a resource after the latest attempt on it."""

    tried: bool = False
    retrieved: bool = False
    """Whether the latest attempt brought it, or that it is unchanged; not one that is not believed."""
    media_type: str | None = None
    """Of the current version, as found."""
    byte_size: int | None = None
    """Of the current version."""


NOTHING: Final = Got()


def format_is_true(promised: str | None, got: Got) -> bool | None:
    """Return whether the found type is the promised one; None if there is none to compare."""
    if promised is None or got.media_type is None:
        return None
    return same_format(promised, got.media_type)


def size_is_true(promised: int | None, got: Got) -> bool | None:
    """Return whether the size is the claimed one, within the tolerance; None if there is none to compare."""
    if promised is None or got.byte_size is None:
        return None
    return abs(promised - got.byte_size) <= SIZE_TOLERANCE * max(promised, got.byte_size)


_WEB: Final = re.compile(r"(https?|ftps?)://[^\s/?#.][^\s/?#]*([/?#]\S*)?", re.IGNORECASE)
_EMAIL: Final = re.compile(r"(mailto:)?[^\s@:/<>\"]+@[^\s@:/<>\".]+(\.[^\s@:/<>\".]+)+", re.IGNORECASE)


def dataset_metrics(claimed: ClaimedDescription, got: Sequence[Got]) -> dict[str, float]:
    """Return all metrics that are known; `got` has one for each form. What was never tried has none."""
    types = [promised_type(form.media_type, form.format) for form in claimed.forms]
    return {
        **_existence(claimed),
        **_conformance(claimed, types),
        "opfo": _share(is_open(kind) for kind in types),
        "opma": _share(is_machine_readable(kind) for kind in types),
        "opli": _share(is_open_licence(form.licence) for form in claimed.forms),
        "reme": 1.0,
        **delivery_metrics(claimed.forms, types, got),
    }


def delivery_metrics(
    forms: Sequence[ClaimedForm], types: Sequence[str | None], got: Sequence[Got]
) -> dict[str, float]:
    """Return the metrics that only an archive can measure: whether the data came and were as claimed."""
    pairs = list(zip(forms, types, got, strict=True))
    known: dict[str, list[bool | None]] = {
        "rere": [each.retrieved for _, _, each in pairs if each.tried],
        "acfo": [format_is_true(kind, each) for _, kind, each in pairs],
        "acsi": [size_is_true(form.byte_size, each) for form, _, each in pairs],
    }
    values = {name: [value for value in found if value is not None] for name, found in known.items()}
    return {name: _share(found) for name, found in values.items() if found}


def is_web_address(text: str) -> bool:
    """Return whether a text has the form of a web address."""
    return _WEB.fullmatch(text.strip()) is not None


def _existence(claimed: ClaimedDescription) -> dict[str, float]:
    forms = claimed.forms
    found = [part is not None for form in forms for part in (form.format, form.media_type, form.byte_size)]
    return {
        "exac": _share(bool(form.url.strip()) for form in forms),
        "exdi": (claimed.title + claimed.description + claimed.keywords) / 3,
        "exco": float(claimed.contact or claimed.publisher),
        "exri": _share(form.licence is not None for form in forms),
        "expr": _share(found),
        "exda": _share(text is not None for text in _dates(claimed)),
        "exsp": float(claimed.spatial),
        "exte": float(claimed.temporal),
    }


def _conformance(claimed: ClaimedDescription, types: Sequence[str | None]) -> dict[str, float]:
    return {
        "coac": _share(is_web_address(form.url) for form in claimed.forms),
        "coce": float(any(_EMAIL.fullmatch(text) for text in claimed.emails)),
        "cocu": float(any(is_web_address(text) for text in claimed.pages)),
        "coda": _share(day_or_moment(text) is not None for text in _dates(claimed)),
        "coli": _share(is_known_licence(form.licence) for form in claimed.forms),
        "cofo": _share(is_registered(kind) for kind in types),
    }


def _dates(claimed: ClaimedDescription) -> list[str | None]:
    """Return the dates of the dataset and of each form, None where missing."""
    return [
        claimed.issued,
        claimed.modified,
        *(day for form in claimed.forms for day in (form.issued, form.modified)),
    ]


def _share(truths: Iterable[bool]) -> float:
    """The share of what is true; none of nothing."""
    listed = list(truths)
    return sum(listed) / len(listed) if listed else 0.0


_ACCESS_RIGHTS: Final = "http://publications.europa.eu/resource/authority/access-right/"
_ACCESS_WORDS: Final = frozenset({"public", "restricted", "non_public", "non-public"})

View = tuple[ClaimedDescription, Sequence[Got]]


class Indicator(msgspec.Struct, frozen=True):
    """An indicator that is worth points, and the share of them that a dataset gets."""

    name: str
    dimension: str
    points: int
    share: Callable[[View], float]


def points(claimed: ClaimedDescription, got: Sequence[Got]) -> dict[str, float]:
    """Points of each dimension (`mqa-findability`, ...) and of all (`mqa`). What was not tried gets none."""
    found: dict[str, float] = {f"mqa-{indicator.dimension}": 0.0 for indicator in INDICATORS}
    for name, value in indicator_points(claimed, got).items():
        found[f"mqa-{_DIMENSION_OF[name]}"] += value
    return {**found, "mqa": sum(found.values())}


def indicator_points(claimed: ClaimedDescription, got: Sequence[Got]) -> dict[str, float]:
    """Points of each indicator, for whoever asks why."""
    return {each.name: each.points * each.share((claimed, got)) for each in INDICATORS}


def _of_dataset(test: Callable[[ClaimedDescription], bool]) -> Callable[[View], float]:
    return lambda view: float(test(view[0]))


def _of_forms(test: Callable[[ClaimedForm], bool]) -> Callable[[View], float]:
    return lambda view: _share(test(form) for form in view[0].forms)


def _of_types(test: Callable[[str | None], bool]) -> Callable[[View], float]:
    return _of_forms(lambda form: test(promised_type(form.media_type, form.format)))


def _retrieved(*, downloads: bool) -> Callable[[View], float]:
    """The share of the forms that really came; of those with a download address, or of all."""

    def share(view: View) -> float:
        claimed, got = view
        pairs = zip(claimed.forms, got, strict=True)
        return _share(each.retrieved for form, each in pairs if form.download or not downloads)

    return share


def _complies(claimed: ClaimedDescription) -> bool:
    """Title, description, and an access address for every form: what DCAT-AP makes mandatory."""
    return claimed.title and claimed.description and all(is_web_address(form.url) for form in claimed.forms)


def _listed_access(claimed: ClaimedDescription) -> bool:
    word = claimed.access_rights or ""
    return word.startswith(_ACCESS_RIGHTS) or word.lower() in _ACCESS_WORDS


INDICATORS: Final = (
    Indicator("keywords", "findability", 30, _of_dataset(lambda claimed: claimed.keywords)),
    Indicator("categories", "findability", 30, _of_dataset(lambda claimed: claimed.themes)),
    Indicator("spatial", "findability", 20, _of_dataset(lambda claimed: claimed.spatial)),
    Indicator("temporal", "findability", 20, _of_dataset(lambda claimed: claimed.temporal)),
    Indicator("access-url-works", "accessibility", 50, _retrieved(downloads=False)),
    Indicator("download-url", "accessibility", 20, _of_forms(lambda form: form.download)),
    Indicator("download-url-works", "accessibility", 30, _retrieved(downloads=True)),
    Indicator("format", "interoperability", 20, _of_forms(lambda form: form.format is not None)),
    Indicator("media-type", "interoperability", 10, _of_forms(lambda form: form.media_type is not None)),
    Indicator(
        "format-vocabulary",
        "interoperability",
        10,
        _of_forms(lambda form: is_registered(media_type_of(form.media_type) or media_type_of(form.format))),
    ),
    Indicator("non-proprietary", "interoperability", 20, _of_types(is_open)),
    Indicator("machine-readable", "interoperability", 20, _of_types(is_machine_readable)),
    Indicator("dcat-ap", "interoperability", 30, _of_dataset(_complies)),
    Indicator("licence", "reusability", 20, _of_forms(lambda form: form.licence is not None)),
    Indicator(
        "licence-vocabulary", "reusability", 10, _of_forms(lambda form: is_known_licence(form.licence))
    ),
    Indicator(
        "access-rights", "reusability", 10, _of_dataset(lambda claimed: claimed.access_rights is not None)
    ),
    Indicator("access-rights-vocabulary", "reusability", 5, _of_dataset(_listed_access)),
    Indicator("contact", "reusability", 20, _of_dataset(lambda claimed: claimed.contact)),
    Indicator("publisher", "reusability", 10, _of_dataset(lambda claimed: claimed.publisher)),
    Indicator("rights", "contextuality", 5, _of_forms(lambda form: form.rights)),
    Indicator("byte-size", "contextuality", 5, _of_forms(lambda form: form.byte_size is not None)),
    Indicator("issued", "contextuality", 5, _of_dataset(lambda claimed: claimed.issued is not None)),
    Indicator("modified", "contextuality", 5, _of_dataset(lambda claimed: claimed.modified is not None)),
)
_DIMENSION_OF: Final = {indicator.name: indicator.dimension for indicator in INDICATORS}


_SQL = statements("tamias.features.quality", "quality.sql")
PAGE = 500

Values = dict[str, float]


def note_claims(cursor: Cursor, portal: str, datasets: Sequence[Dataset]) -> None:
    """Store what was claimed of datasets that `note_datasets` has noted, in the same transaction."""
    claimed = {storable(each.record): msgspec.json.encode(claims_of(each)).decode() for each in datasets}
    if claimed:
        named = {"portal": storable(portal), "record": list(claimed), "told": list(claimed.values())}
        cursor.execute(_SQL["note_claims"].text, named)


def measure(session: Session, _blobs: BlobReader, _settings: Settings) -> None:
    """Measure deliveries, then descriptions."""
    measure_resources(session)
    measure_portals(session)


def measure_portals(session: Session) -> int:
    """Measure all that catalogues describe, and catalogues by the mean; return how many descriptions."""
    measured = 0
    for portal, url in session.fetch_all(_SQL["portals"]):
        measured += _measure_portal(session, portal, url)
    return measured


def measure_resources(session: Session) -> int:
    """Measure how the resources that a portal lists were delivered; return how many."""
    measured, after = 0, ""
    while page := session.fetch_all(_SQL["page_resources"], {"after": after, "limit": PAGE}):
        measured += _measure_some(session, [name for (name,) in page])
        after = page[-1][0]
    return measured


def _measure_some(session: Session, names: list[str]) -> int:
    got = _read_got(session, names)
    promises = session.fetch_all(_SQL["read_promises"], {"resource": names})
    values = {
        name: delivery_metrics([ClaimedForm(url=url, byte_size=size)], [expected], [got[name]])
        for name, url, expected, size in promises
    }
    _store(session, values)
    return len(values)


def _measure_portal(session: Session, portal: int, url: str) -> int:
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    measured, after = 0, ""
    while page := session.fetch_all(_SQL["page_told"], {"portal": portal, "after": after, "limit": PAGE}):
        claimed = {
            record: msgspec.convert(text, ClaimedDescription) for record, text in page if text is not None
        }
        got = _got_of_forms(session, claimed)
        values = {
            record: {**dataset_metrics(claimed[record], got[record]), **points(claimed[record], got[record])}
            if record in claimed
            else {"reme": 0.0}
            for record, _ in page
        }
        _store(session, {record_id(url, record): each for record, each in values.items()})
        for each in values.values():
            for metric, value in each.items():
                sums[metric][0] += value
                sums[metric][1] += 1
        measured += len(page)
        after = page[-1][0]
    _store(session, {url: {metric: total / count for metric, (total, count) in sums.items()}})
    return measured


def _got_of_forms(session: Session, claimed: dict[str, ClaimedDescription]) -> dict[str, list[Got]]:
    """Return what the archive got of each form of each description."""
    named = {record: [_resource(form.url) for form in each.forms] for record, each in claimed.items()}
    got = _read_got(session, [each for listed in named.values() for each in listed if each is not None])
    return {record: [got[each] if each else NOTHING for each in listed] for record, listed in named.items()}


def _resource(url: str) -> str | None:
    try:
        return resource_id(url_key(url))
    except UrlError:
        return None


def _read_got(session: Session, resources: Sequence[str]) -> dict[str, Got]:
    found: dict[str, Got] = defaultdict(lambda: NOTHING)
    for resource, tried, retrieved, media_type, size in session.fetch_all(
        _SQL["read_got"], {"resource": list(resources)}
    ):
        found[resource] = Got(tried=tried, retrieved=retrieved, media_type=media_type, byte_size=size)
    return found


def _store(session: Session, values: dict[str, Values]) -> None:
    names = {
        "subject": [subject for subject, each in values.items() for _ in each],
        "metric": [metric for each in values.values() for metric in each],
    }
    measured = [value for each in values.values() for value in each.values()]
    now = session.now()

    def store(cursor: Cursor) -> None:
        cursor.execute(_SQL["drop_measures"].text, {"subjects": list(values), **names})
        cursor.execute(_SQL["put_measures"].text, {"now": now, "value": measured, **names})

    session.transact(store)
