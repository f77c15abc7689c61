"""Tools of harvesters: findings out of records, ends of harvests, loose JSON, texts in several languages."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec

from tamias.features.dcat.datasets.descriptions import Descriptions
from tamias.features.dcat.datasets.from_dcat import addresses_in, unread_in
from tamias.features.dcat.datasets.mapping import MappedRecord
from tamias.model.capture import Capture, Outcome
from tamias.model.dataset import Agent, AgentRole, Dataset, DcatProperty
from tamias.model.finding import Datasets, Finding, HarvestEnd, Links, Quads, SourceRecords
from tamias.model.vocabulary import sound_iri

MOST_PAGE = 64 << 20
"""Bytes of one answer of an interface; more is not read."""
DATASETS_A_FINDING = 500
NO_FIELDS: Final[dict[str, str]] = {}
TITLES: Final = {"title": "dct:title", "description": "dct:description"}
"""The fields of most records, and of their distributions, that may be in several languages."""


def described(records: Sequence[MappedRecord], catalogue: str, *, pages: bool = True) -> list[Finding]:
    """Return findings of records: DCAT, documents, datasets, and links to their data, or to their `pages`."""
    if not records:
        return []
    quads = [quad for each in records for quad in each.quads]
    datasets = [each.dataset for each in records]
    sources = SourceRecords([each.source for each in records])
    return [Quads(quads), sources, Datasets(datasets), *links(addresses_of(datasets, pages=pages), catalogue)]


def addresses_of(datasets: Iterable[Dataset], *, pages: bool = True) -> dict[str, str | None]:
    """Return the addresses of data with their kinds; the landing page where there is nothing else."""
    found: dict[str, str | None] = {}
    for dataset in datasets:
        for each in dataset.distributions:
            if each.service:
                found[each.service] = "sparql" if each.service_kind == "sparql" else None
            if each.url != each.service:
                found.setdefault(each.url, None)
        if pages and not dataset.distributions and dataset.landing_page:
            found.setdefault(dataset.landing_page, None)
    return found


def links(addresses: dict[str, str | None], base: str) -> list[Finding]:
    """Return links to addresses, one finding for each kind; other texts are left out."""
    kinds: dict[str | None, list[str]] = {}
    for address, kind in addresses.items():
        if sound_iri(address, web=True) is not None:
            kinds.setdefault(kind, []).append(address)
    return [Links(references, base, kind) for kind, references in kinds.items()]


def catalogue_findings(said: Descriptions, datasets: list[Dataset], base: str) -> Iterator[Finding]:
    """Yield the datasets that a catalogue describes, and links to their data."""
    for start in range(0, len(datasets), DATASETS_A_FINDING):
        yield Datasets(datasets[start : start + DATASETS_A_FINDING])
    yield from links(addresses_in(said) | dict.fromkeys(unread_in(said)), base)


def failure(capture: Capture, what: str, most: int = MOST_PAGE) -> HarvestEnd | None:
    """Return the end of a harvest that got no usable response; None for a usable one."""
    if capture.outcome is Outcome.OK and capture.body is not None:
        if capture.body.size <= most:
            return None
        reason = f"{capture.body.size} bytes, more than the {most} that are read"
        return HarvestEnd(outcome=Outcome.FAILED, reason=f"{what} {capture.url}: {reason}")
    outcome = capture.outcome if capture.outcome is not Outcome.OK else Outcome.FAILED
    return HarvestEnd(
        outcome=outcome,
        reason=f"{what} {capture.url}: {capture.reason or 'nothing came'}",
        retry=capture.retry,
        retry_after_ms=capture.retry_after_ms,
    )


def text(value: Any) -> str | None:
    """Return a text or a number as text; None for blanks and for any other shape.

    >>> text(" a "), text(7), text([]), text("")
    ('a', '7', None, None)
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return str(value).strip() or None


def texts(value: Any) -> tuple[str, ...]:
    """Return the texts of a list, or of a single text, each once.

    >>> texts(["a", None, "a", "b"]), texts("a"), texts({"a": 1})
    (('a', 'b'), ('a',), ())
    """
    found = map(text, value if isinstance(value, list) else [value])
    return tuple(dict.fromkeys(each for each in found if each))


def web(value: Any) -> str | None:
    """Return a text that is an address that can be fetched; None for any other."""
    found = text(value)
    return found if sound_iri(found, web=True) else None


def first_agent(roles: Iterable[AgentRole], role: str) -> Agent | None:
    """Return the first agent that has a role."""
    return next((each.agent for each in roles if each.property == role), None)


def checksum(name: str | None, digits: str | None) -> dict[str, Any]:
    """Return the fields of a distribution for a checksum."""
    if not (name and digits):
        return {}
    is_sha256 = name.lower().replace("-", "") == "sha256"
    return {"sha256": digits} if is_sha256 else {"checksum": (name, digits)}


def properties(
    record: dict[str, Any], texts_of: Mapping[str, str], lists: Mapping[str, str] = NO_FIELDS
) -> Iterator[DcatProperty]:
    """Yield properties by the names of fields: texts in their languages, and lists of texts, also in JSON."""
    for name, term in texts_of.items():
        yield from (DcatProperty(term, one, tag) for tag, one in translated(record, name))
    for name, term in lists.items():
        yield from (DcatProperty(term, each) for each in texts(decoded(record.get(name))))


def table(value: Any) -> dict[str, Any]:
    """Return a JSON object; an empty one for any other shape."""
    return value if isinstance(value, dict) else {}


def tables(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list, or a single one."""
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict)]


def decoded(value: Any) -> Any:
    """Decode a value that is written as JSON text; return any other as it stands."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return msgspec.json.decode(value.encode("utf-8", "replace"))
        except (msgspec.DecodeError, RecursionError):
            pass
    return value


def several(value: Any) -> tuple[str, ...]:
    """Return the texts of a list, of a list written as JSON, or between commas.

    >>> several('["a", "b"]'), several("a, b"), several(["a"]), several("{a,b}")
    (('a', 'b'), ('a', 'b'), ('a',), ('a', 'b'))
    """
    value = decoded(value)
    return texts(value.strip("{}").split(",")) if isinstance(value, str) else texts(value)


def count(value: Any) -> int | None:
    """Return a number from 0 up, also where it is written as text.

    >>> count(5), count("5"), count(-1), count(True), count("many")
    (5, 5, None, None, None)
    """
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        return int(value.strip()[:18])
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 <= value < 2**63 else None


class CycleDetector(msgspec.Struct, kw_only=True):
    """Detects pages that come round again, whatever their number, in constant space (after Brent)."""

    mark: bytes = b""
    steps: int = 0
    power: int = 1

    def again(self, page: Iterable[str]) -> bool:
        """Return whether a page with these records has been there; one without records never counts."""
        mark = sha256("\n".join(page).encode()).digest()[:16]
        if mark == _NOTHING:
            return False
        if mark == self.mark:
            return True
        self.steps += 1
        if self.steps == self.power:
            self.mark, self.steps, self.power = mark, 0, self.power * 2
        return False


_NOTHING = sha256(b"").digest()[:16]


_TAG = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,8})*")
_TWO_LETTERS: Final = (
    "aa ab af am an ar as az ba be bg bn bo br bs ca co cs cy da de dv el en eo es et eu fa fi fo fr fy "
    "ga gd gl gu he hi hr ht hu hy is it ja ka kk kl km kn ko ku ky la lb lo lt lv mi mk ml mn mr ms mt "
    "my nb ne nl nn no oc pa pl ps pt rm ro ru sa sc sd se si sk sl sq sr sv sw ta te tg th ti tk tl tr "
    "tt ug uk ur uz vi xh yi zh zu"
)
_CODES: Final = frozenset(_TWO_LETTERS.split())
"""The languages that the end of a field's name may be: `id` and a few others are left out."""


def is_by_language(value: Any) -> bool:
    """Return whether a value is a table of texts by their languages.

    >>> is_by_language({"de": "Baum", "fr": None}), is_by_language({"de": {}}), is_by_language({"name": "x"})
    (True, False, False)
    """
    if not isinstance(value, dict) or not value:
        return False
    keys = dict.keys(value)
    return all(
        isinstance(key, str) and _TAG.fullmatch(key) and key[:2].lower() in _CODES for key in keys
    ) and all(each is None or isinstance(each, str | list) for each in dict.values(value))


def by_language(value: Any) -> tuple[tuple[str, str], ...]:
    """Return the tag and the text of each language, or of a list of them.

    >>> by_language({"de": "Baum", "en_GB": ["tree", "wood"]})
    (('de', 'Baum'), ('en-GB', 'tree'), ('en-GB', 'wood'))
    >>> by_language([{"@language": "fr", "@value": "arbre"}, {"language": "it", "label": "albero"}, "x"])
    (('fr', 'arbre'), ('it', 'albero'))
    """
    return tuple(_pairs(value))


def _pairs(value: Any) -> Iterator[tuple[str, str]]:
    if is_by_language(value):
        for tag, each in value.items():
            yield from ((tag.replace("_", "-"), one) for one in texts(each))
    for each in value if isinstance(value, list) else ():
        if isinstance(each, dict):
            tag = text(each.get("@language")) or text(each.get("language")) or text(each.get("lang"))
            words = (
                text(each.get(name)) for name in ("@value", "label", "value", "text", "content", "title")
            )
            found = next(filter(None, words), None)
            if tag and found and _TAG.fullmatch(tag):
                yield tag, found


def translated(record: dict[str, Any], field: str) -> tuple[tuple[str, str], ...]:
    """Return a field's texts by language: of the field, `FIELD_translated`, `FIELD_fr` or `FIELD-fr`.

    >>> translated({"title": {"de": "Baum"}, "title_fr": "arbre"}, "title")
    (('de', 'Baum'), ('fr', 'arbre'))
    """
    found = dict.fromkeys((*by_language(record.get(field)), *by_language(record.get(f"{field}_translated"))))
    size = len(field)
    for key in record:
        if key.startswith(field) and key[size : size + 1] in ("_", "-"):
            tag = key[size + 1 :].replace("_", "-")
            if tag.partition("-")[0] in _CODES and _TAG.fullmatch(tag):
                found.update(((tag, one), None) for one in texts(record.get(key)))
    return tuple(found)


def one_text(value: Any) -> str | None:
    """Return a text; of several languages the English one, else the first.

    >>> one_text({"de": "Baum", "en": "Tree"}), one_text(["a"]), one_text(" ")
    ('Tree', None, None)
    """
    if isinstance(value, dict) or (isinstance(value, list) and value and isinstance(value[0], dict)):
        pairs = by_language(value)
        return next((one for tag, one in pairs if tag[:2] == "en"), pairs[0][1] if pairs else None)
    return text(value)
