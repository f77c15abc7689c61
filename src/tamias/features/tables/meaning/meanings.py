"""Guesses what the values of a column mean: by their form and proof, and by the column's name."""

import re
import sys
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from ipaddress import ip_address

import msgspec

from tamias.features.archive.canonical.values.form import ColumnForm
from tamias.model.profile import Meaning

_UUID = re.compile(r"\{?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\}?", re.IGNORECASE)
_DOI = re.compile(r"(?:https?://(?:dx\.)?doi\.org/|doi:\s?)?10\.\d{4,9}/\S+", re.IGNORECASE)
_ISBN_GAP = re.compile(r"[\s-]")
_ISBN_13, _ISBN_10 = re.compile(r"97[89]\d{10}"), re.compile(r"\d{9}[\dX]")
_ISSN = re.compile(r"(?:ISSN\s?)?(\d{4})-(\d{3}[\dXx])")
_EMAIL = re.compile(r"(?:mailto:)?[\w.!#$%&'*+/=?^`{|}~-]{1,64}@[\w-]+(?:\.[\w-]+)+")
_URL = re.compile(r"(?:https?|ftps?)://[^\s/?#]+\S*|www\.[^\s/]+\.\w{2,}\S*", re.IGNORECASE)
_IBAN = re.compile(r"[A-Z]{2}\d{2}[A-Z0-9]{11,30}")
_ORCID = re.compile(r"(?:https?://orcid\.org/)?((?:\d{4}-){3}\d{3}[\dX])")
_PHONE = re.compile(
    r"(?:\+|00)\d[\d ()/.\-]{6,18}\d|0\d{1,4}[ /\-]\d[\d ()/.\-]{3,14}\d|\(0?\d{2,4}\) ?\d[\d -]{4,12}\d"
)


def is_ip(text: str) -> bool:
    """An IP address of either version."""
    if "." not in text and ":" not in text:
        return False
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def is_isbn(text: str) -> bool:
    """An ISBN of 10 or 13 digits whose check digit is right.

    >>> is_isbn("978-3-16-148410-0"), is_isbn("0-306-40615-2"), is_isbn("978-3-16-148410-1")
    (True, True, False)
    """
    if len(text) < 10:
        return False
    digits = _ISBN_GAP.sub("", text.upper().removeprefix("ISBN").lstrip(": "))
    if len(digits) not in (10, 13):
        return False
    if _ISBN_13.fullmatch(digits):
        return sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(digits)) % 10 == 0
    return _ISBN_10.fullmatch(digits) is not None and _weighted(digits, 10) % 11 == 0


def is_issn(text: str) -> bool:
    """An ISSN whose check digit is right.

    >>> is_issn("0378-5955"), is_issn("0378-5954")
    (True, False)
    """
    found = _ISSN.fullmatch(text)
    return found is not None and _weighted(found[1] + found[2].upper(), 8) % 11 == 0


def is_iban(text: str) -> bool:
    """An IBAN whose check digits are right.

    >>> is_iban("DE89 3704 0044 0532 0130 00"), is_iban("DE88 3704 0044 0532 0130 00")
    (True, False)
    """
    bare = text.replace(" ", "")
    return (
        _IBAN.fullmatch(bare) is not None
        and int("".join(str(int(sign, 36)) for sign in bare[4:] + bare[:4])) % 97 == 1
    )


def is_orcid(text: str) -> bool:
    """An ORCID iD whose check digit is right (ISO 7064, 11-2).

    >>> is_orcid("0000-0002-1825-0097"), is_orcid("0000-0002-1825-0098")
    (True, False)
    """
    found = _ORCID.fullmatch(text)
    if found is None:
        return False
    total = 0
    for digit in found[1].replace("-", "")[:-1]:
        total = (total + int(digit)) * 2
    return found[1][-1] == "0123456789X"[(12 - total % 11) % 11]


def _weighted(digits: str, first: int) -> int:
    return sum((first - place) * (10 if digit == "X" else int(digit)) for place, digit in enumerate(digits))


_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SPLIT = re.compile(r"[\W_]+|(?<=\D)(?=\d)|(?<=\d)(?=\D)")
_END, _BEGINNING = 6, 7
"""A word of so many letters also counts at the end or the beginning of a longer one: Gemeindenummer."""

_LONGEST_NAME = 100
"""That is remembered: the next version has the same columns."""


def says(name: str, meaning: str) -> bool:
    """Return whether the name of a column has a word for a meaning.

    >>> says("REF_YEAR", "year"), says("Gemeindename", "place"), says("real estate", "place")
    (True, True, False)
    """
    return _says(name, meaning) if len(name) <= _LONGEST_NAME else _says.__wrapped__(name, meaning)


@lru_cache(maxsize=8192)
def _says(name: str, meaning: str) -> bool:
    words = _words().get(meaning, frozenset())
    whole = folded(_CAMEL.sub("_", name.strip())).replace(" ", "_").replace("-", "_")
    if whole in words or whole.replace("_", "") in words:
        return True
    parts = [part for part in _SPLIT.split(whole) if part]
    if any(part in words for part in parts):
        return True
    return any(
        (len(word) >= _END and part.endswith(word)) or (len(word) >= _BEGINNING and part.startswith(word))
        for part in parts
        if len(part) > _END
        for word in words
    )


@cache
def _words() -> dict[str, frozenset[str]]:
    """The words of each meaning: `meaning: word word`, going on where a line is indented."""
    text = files(__package__).joinpath("words.txt").read_text("utf-8").replace("\n  ", " ")
    lines = (line.partition(": ") for line in text.splitlines())
    return {meaning: frozenset(words.split()) for meaning, _, words in lines}


@cache
def language_codes() -> frozenset[str]:
    """The codes of ISO 639 with two letters, and the usual ones with three."""
    return frozenset(files(__package__).joinpath("languages.txt").read_text("utf-8").split())


@cache
def country_codes() -> tuple[frozenset[str], frozenset[str]]:
    """The codes of ISO 3166 with two and with three letters, and those of the European Union for Greece
    and the United Kingdom."""
    from iso3166 import countries_by_alpha2, countries_by_alpha3

    return frozenset({*countries_by_alpha2, "EL", "UK"}), frozenset(countries_by_alpha3)


@cache
def country_names() -> frozenset[str]:
    """Names of countries, folded: those of ISO 3166, and others as tables write them in several languages."""
    from iso3166 import countries

    names = {folded(name) for each in countries for name in (each.name, each.apolitical_name)}
    others = files(__package__).joinpath("countries.txt").read_text("utf-8").replace("\n", "").split(";")
    return frozenset({*names, *others})


def folded(text: str) -> str:
    """Return a text without case and accents, for comparison.

    >>> folded("Côte d'Ivoire")
    "cote d'ivoire"
    """
    if text.isascii():
        return text.casefold()
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(sign for sign in parts if not unicodedata.combining(sign))


_FITTING = 0.7
"""The share of the values that must fit a rule."""

LEAST = 0.5
"""A guess that is less sure is not made."""

_DBPEDIA = "http://dbpedia.org/ontology/"
_BIBO = "http://purl.org/ontology/bibo/"
_VCARD = "http://www.w3.org/2006/vcard/ns#"
RANGES = {
    "country": _DBPEDIA + "Country",
    "place": _DBPEDIA + "Place",
    "postcode": _DBPEDIA + "Place",
    "region": _DBPEDIA + "AdministrativeRegion",
    "coordinate": "http://www.opengis.net/ont/geosparql#Geometry",
    "email": _VCARD + "Email",
    "url": "http://xmlns.com/foaf/0.1/Document",
    "isbn": _BIBO + "Book",
    "issn": _BIBO + "Periodical",
    "doi": _BIBO + "Document",
    "orcid": "http://xmlns.com/foaf/0.1/Person",
    "language": "http://purl.org/dc/terms/LinguisticSystem",
    "address": _VCARD + "Address",
    "money": "http://schema.org/MonetaryAmount",
}
"""The class of what such values name; a date or a number is a literal and has none."""

_POSTCODE = re.compile(
    r"\d{4,5}|\d{5}-\d{4}|\d{4}-\d{3}|\d{2}-\d{3}|\d{3} \d{2}|\d{4} ?[A-Z]{2}|(?:[A-Z]{1,2}-?)\d{4,5}"
    r"|[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}"
)
_PAIR = re.compile(r"[\[(]?\s*(-?\d{1,3}(?:\.\d+)?)\s*[,; ]\s*(-?\d{1,3}(?:\.\d+)?)\s*[\])]?")
_ANY = re.IGNORECASE | re.DOTALL
_WKT = re.compile(
    r"(?:SRID=\d+;\s*)?(?:MULTI)?(?:POINT|LINESTRING|POLYGON|GEOMETRYCOLLECTION)\s*(?:Z\s*)?\(.*",
    _ANY,
)
_YEAR = re.compile(r"(?:1[5-9]|20|21)\d{2}")
_NUTS = re.compile(r"[A-Z]{2}[0-9A-Z]{1,3}")
_NUMBERS = frozenset({"integer", "decimal", "double"})
_TEXT = frozenset({"string"})
_CODES = frozenset({"string", "integer"})


class ColumnSample(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The values and properties of a column from which its meaning is guessed."""

    name: str
    form: ColumnForm
    values: Sequence[str]
    """Different ones, trimmed."""
    unique: bool = False
    pattern: str | None = None
    serial: bool = False
    """Whole numbers that count on, from the least to the greatest without a gap."""

    @cached_property
    def lengths(self) -> tuple[int, int]:
        """The least and the greatest length that allow enough values to fit a rule."""
        lengths = sorted(map(len, self.values))
        fitting = max(1, int(_FITTING * len(lengths)))
        return lengths[-fitting], lengths[fitting - 1]

    @cached_property
    def text(self) -> str:
        """The values, one per line."""
        return "\n".join(self.values)


class _Rule(msgspec.Struct, frozen=True):
    """A test for single values, and what it is worth where the column's name does not say the same."""

    type: str
    fits: Callable[[str], bool]
    alone: float
    datatypes: frozenset[str] = _TEXT
    named: float = 1.0
    """What it is worth where the name does."""
    needs: str = ""
    """Signs of which every value that fits has one, so that a column without them need not be tested."""
    shortest: int = 0
    longest: int = sys.maxsize
    """Signs of a value that fits; of this column others need not be tested."""


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return None


def _whole(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text) is not None


def _within(most: float) -> Callable[[str], bool]:
    def fits(text: str) -> bool:
        number = _number(text)
        return number is not None and abs(number) <= most

    return fits


def _is_pair(text: str) -> bool:
    found = _PAIR.fullmatch(text)
    return found is not None and "." in text and all(abs(float(part)) <= 180 for part in found.groups())


def _is_region(text: str) -> bool:
    return _NUTS.fullmatch(text) is not None and text[:2] in country_codes()[0]


def _is_words(text: str) -> bool:
    return any(sign.isalpha() for sign in text) and len(text) <= 100


_RULES = (
    _Rule("email", _whole(_EMAIL), 1.0, needs="@"),
    _Rule("doi", _whole(_DOI), 1.0, needs="/"),
    _Rule("orcid", is_orcid, 1.0, needs="-"),
    _Rule("url", _whole(_URL), 0.98, needs=":."),
    _Rule("uuid", _whole(_UUID), 1.0, needs="-"),
    _Rule("iban", is_iban, 1.0, shortest=15),
    _Rule("isbn", is_isbn, 0.9, _CODES, shortest=10),
    _Rule("issn", is_issn, 0.95, needs="-"),
    _Rule("ip", is_ip, 0.9, needs=".:"),
    _Rule("coordinate", _whole(_WKT), 1.0, needs="("),
    _Rule("coordinate", _is_pair, 0.7, needs="."),
    _Rule("country", lambda text: folded(text) in country_names(), 0.95),
    _Rule("country", lambda text: text.upper() in country_codes()[1], 0.7, longest=3),
    _Rule("country", lambda text: text.upper() in country_codes()[0], 0.4),
    _Rule("language", lambda text: text.lower().partition("-")[0] in language_codes(), 0.3),
    _Rule("region", _is_region, 0.45),
    _Rule("phone", _whole(_PHONE), 0.7, _CODES, shortest=8, longest=22),
    _Rule("postcode", _whole(_POSTCODE), 0.0, _CODES),
    _Rule("latitude", _within(90), 0.0, _NUMBERS),
    _Rule("longitude", _within(180), 0.0, _NUMBERS),
    _Rule("year", _whole(_YEAR), 0.5, frozenset({"integer"})),
    _Rule("address", _is_words, 0.0, named=0.7),
    _Rule("place", _is_words, 0.0, named=0.75),
)


def meaning_of(column: ColumnSample) -> Meaning | None:
    """The surest guess; None where none is sure enough."""
    if not column.values:
        return None
    type_, confidence = _by_form(column)
    code = _identifier(column)
    for rule, worth in _rules_of(column.name, column.form.datatype):
        # Of guesses that are as sure the first counts, and that of a code is the last.
        if worth > confidence and worth >= code and (guess := worth * _share(rule, column)) > confidence:
            type_, confidence = rule.type, guess
    if code > confidence:
        type_, confidence = "identifier", code
    if confidence < LEAST:
        return None
    return Meaning(type=type_, confidence=round(min(confidence, 0.99), 2), range=RANGES.get(type_))


def _rules_of(name: str, datatype: str) -> tuple[tuple[_Rule, float], ...]:
    """Rules for a column of that name, and what each is worth; without those that are never sure enough."""
    find = _rules if len(name) <= _LONGEST_NAME else _rules.__wrapped__
    return find(name, datatype)


@lru_cache(maxsize=1024)
def _rules(name: str, datatype: str) -> tuple[tuple[_Rule, float], ...]:
    fitting = [rule for rule in _RULES if datatype in rule.datatypes]
    valued = [(rule, rule.named if says(name, rule.type) else rule.alone) for rule in fitting]
    return tuple([(rule, worth) for rule, worth in valued if worth >= LEAST])


def _share(rule: _Rule, column: ColumnSample) -> float:
    """The share of the values that fit; 0 as soon as too few can."""
    values, fits = column.values, rule.fits
    at_least, at_most = column.lengths
    if at_least < rule.shortest or at_most > rule.longest:
        return 0.0
    if rule.needs and sum(map(column.text.count, rule.needs)) < _FITTING * len(values):
        return 0.0
    fitting = len(values)
    for value in values:
        if not fits(value):
            fitting -= 1
            if fitting / len(values) < _FITTING:
                return 0.0
    return fitting / len(values)


def _by_form(column: ColumnSample) -> tuple[str, float]:
    form = column.form
    if form.datatype in ("date", "dateTime", "gYearMonth"):
        return "date", 0.7 if form.odd else 0.97
    if form.datatype == "time":
        return "time", 0.95
    if not form.is_number:
        return "", 0.0
    if form.unit is not None:
        return "percent" if form.unit == "%" else "money", 0.97
    return next(((each, 0.6) for each in ("percent", "money") if says(column.name, each)), ("", 0.0))


def _identifier(column: ColumnSample) -> float:
    """A code: no value twice, or all of one shape; and of a form that nobody calculates with."""
    whole = column.form.datatype == "integer" and column.form.format is None
    shaped = column.form.datatype == "string" and column.pattern is not None
    if not whole and not shaped:
        return 0.0
    if says(column.name, "identifier"):
        return 0.95 if column.unique else 0.65
    digits = shaped and "9" in (column.pattern or "")
    return 0.6 if column.unique and len(column.values) > 2 and (column.serial or digits) else 0.0
