"""Identifiers that carry their own proof, or a form of their own."""

import re
from ipaddress import ip_address

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


def is_uuid(text: str) -> bool:
    """A UUID, in braces or without."""
    return _UUID.fullmatch(text) is not None


def is_doi(text: str) -> bool:
    """A DOI, as it is or as a URL."""
    return _DOI.fullmatch(text) is not None


def is_email(text: str) -> bool:
    """An address of electronic mail."""
    return _EMAIL.fullmatch(text) is not None


def is_url(text: str) -> bool:
    """A web address."""
    return _URL.fullmatch(text) is not None


def is_phone(text: str) -> bool:
    """A telephone number: international, or with a separate area code."""
    return _PHONE.fullmatch(text) is not None


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
