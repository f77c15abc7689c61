"""Which datatype the value of a `time` element has, by its looks."""

import re

from pyoxigraph import NamedNode

XSD = "http://www.w3.org/2001/XMLSchema#"

_YEAR = r"-?(?:[1-9]\d{3,}|0\d{3})"
_MONTH = r"(?:0[1-9]|1[0-2])"
_DATE = rf"{_YEAR}-{_MONTH}-(?:0[1-9]|[12]\d|3[01])"
_ZONE = r"(?:Z|[+-](?:0\d|1[0-4]):[0-5]\d)?"
_TIME = r"(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?"
_DURATION = r"-?P(?=\d|T\d)(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?"
_LONGEST = 64
_LOOKS = [
    (NamedNode(XSD + name), re.compile(pattern))
    for name, pattern in [
        ("date", _DATE + _ZONE),
        ("dateTime", rf"{_DATE}T{_TIME}{_ZONE}"),
        ("time", _TIME + _ZONE),
        ("gYearMonth", f"{_YEAR}-{_MONTH}"),
        ("gYear", _YEAR),
        ("duration", _DURATION),
    ]
]


def date_type(text: str) -> NamedNode | None:
    """The datatype of a date, a time or a duration; None where it looks like none of them.

    >>> date_type("2012-03-18T00:00:00Z")
    <NamedNode value=http://www.w3.org/2001/XMLSchema#dateTime>
    """
    if len(text) > _LONGEST:
        return None
    return next((datatype for datatype, looks in _LOOKS if looks.fullmatch(text)), None)
