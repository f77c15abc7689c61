"""The points of the European Metadata Quality Assessment (data.europa.eu), 405 at most.

Indicators and points are the public methodology's. Approximate: an indicator of the forms gives its points by
their share; lists of formats and licences are ours; compliance is looked at for mandatory properties only.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from tamias.content.formats import media_type_of
from tamias.features.quality.claims import ClaimedDescription, ClaimedForm, Got
from tamias.features.quality.formats import (
    is_known_licence,
    is_machine_readable,
    is_open,
    is_registered,
    promised_type,
)
from tamias.features.quality.portal_watch import is_web_address

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
    return lambda view: _mean(test(form) for form in view[0].forms)


def _of_types(test: Callable[[str | None], bool]) -> Callable[[View], float]:
    return _of_forms(lambda form: test(promised_type(form.media_type, form.format)))


def _retrieved(*, downloads: bool) -> Callable[[View], float]:
    """The share of the forms that really came; of those with a download address, or of all."""

    def share(view: View) -> float:
        claimed, got = view
        pairs = zip(claimed.forms, got, strict=True)
        return _mean(each.retrieved for form, each in pairs if form.download or not downloads)

    return share


def _mean(truths: Iterable[bool]) -> float:
    listed = list(truths)
    return sum(listed) / len(listed) if listed else 0.0


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
