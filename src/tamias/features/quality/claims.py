"""Claims of a catalogue about a dataset that its quality is measured by; small, since each is stored."""

from collections.abc import Iterable
from typing import Final

import msgspec

from tamias.database.columns import storable
from tamias.features.quality.formats import same_format
from tamias.model.dataset import Agent, Dataset, Distribution

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
