"""Judge whether a response is a new version of a resource, or only looks like one. Pure.

Error messages come with status 200 and in the type of the data: as text, as JSON, as XML.
"""

import re
from typing import Any, Final

import msgspec

from tamias.archive.versions.judgement import PAGES, AttemptMeaning, Judgement, KnownState
from tamias.content.formats import Form, form_of
from tamias.model.capture import Outcome

MOST_SHARED = 4
"""Resources of one host that may have the same body before it is taken for an error page."""

LOST_FROM = 20
"""Items from which on a version is missed when nearly all of them are gone."""

LOST_SHARE = 20
"""One item of so many is left, or fewer."""

SHARED_BYTES = 1 << 20
"""A larger body is hardly an error page, however many have it."""

MOST_ERROR: Final = 8 << 10
"""Bytes of a message; what is longer has other things to say."""
_MOST_LINES: Final = 12
_MOST_KEYS: Final = 12
_SHOWN: Final = 120

_SENTENCE = re.compile(
    r"""\W{0,4}
    (?: (?: fatal | internal | unexpected | unhandled | uncaught | server | database | db | sql | mysql | php
          | http | proxy | application )\  ){0,3}
    (?: (?: error | errors | exception | fatal | failure ) (?: \ [45][0-9][0-9] )?
        (?= \s*[:!.] | \s+-\s | \s*\Z | \s*\n\s* (?: [^\W\d]+\  ){2} )
      | access\ denied | permission\ denied | forbidden | unauthori[sz]ed
      | (?:page|file|resource|object|document)\ not\ found | not\ found | no\ such\ \w+
      | service\ (?:temporarily\ )?unavailable | temporarily\ unavailable | bad\ gateway | bad\ request
      | gateway\ time-?out | too\ many\ (?:requests|connections) | rate\ limit\ exceeded | quota\ exceeded
      | (?:request|connection|query|operation)\ (?:was\ )?(?:failed|refused|reset|rejected|timed\ out|aborted)
      | could\ not\ connect | cannot\ connect | unable\ to\ connect | ora-[0-9]{4,6}
      | traceback\ \(most\ recent\ call\ last\)
    )
    (?= [:!.\s-] | $ )
    (?! \s*[,;|\t] )""",
    re.VERBOSE | re.IGNORECASE,
)
_XML = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<[?!][^>]*>\s*)*<(?:\w+:)?"
    rb"(Error|Exception|ExceptionReport|ServiceExceptionReport|Fault)\b"
)
_NUMBER = re.compile(r"[\s0-9.,±%+-]*(?:[eE][+-]?[0-9]+)?\s*")
_TEXTS: Final = frozenset({Form.ROWS, Form.STATEMENTS, Form.TEXT})
_ERRORS: Final = frozenset(
    {"error", "errors", "exception", "fault", "errormessage", "error_message", "errorcode", "error_code",
     "stacktrace", "stack_trace", "traceback"}
)  # fmt: skip
_STATUS: Final = frozenset({"status", "statuscode", "status_code"})
_MESSAGES: Final = frozenset({"message", "detail", "title", "reason", "description"})
_FAILED: Final = frozenset({"error", "fail", "failed", "failure"})
_LEAST_STATUS: Final = 400
_MOST_STATUS: Final = 599


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """The response of an attempt, as it is judged."""

    outcome: Outcome
    sha256: str | None = None
    size: int = 0
    media_type: str | None = None
    """As found."""
    fingerprint: str | None = None
    shared_by: int = 0
    """Other resources of the host with the same body."""
    items: int | None = None
    """Rows, statements or items in it, where they were counted."""
    counted: str = "items"
    """What was counted."""
    is_data: bool = False
    """Whether it was read as the table or graph that its type says, with two rows or a statement."""
    error: str | None = None
    """What it says, where it is an error message and nothing else; or why the response was refused."""
    at: int = 0
    """When it was observed, in milliseconds."""


def judge(observed: Observation, known: KnownState, patience_ms: int | None = None) -> Judgement:
    """An error message or a page in place of data, nearly all rows lost, a body shared by many: suspicious.

    What stays suspicious for longer than `patience_ms` is taken for what the resource has become.
    """
    if observed.outcome is Outcome.GONE:
        return Judgement(AttemptMeaning.GONE)
    if observed.outcome is Outcome.UNCHANGED:
        return Judgement(AttemptMeaning.UNCHANGED)
    if observed.outcome is Outcome.REFUSED and observed.error is not None:
        return Judgement(AttemptMeaning.SUSPECT, observed.error)
    if observed.outcome is not Outcome.OK or observed.sha256 is None:
        return Judgement(AttemptMeaning.FAILED)
    if observed.sha256 == known.sha256:
        return Judgement(AttemptMeaning.UNCHANGED)
    doubt = _doubt(observed, known)
    if doubt is not None:
        since = known.suspicious_since
        if patience_ms is None or since is None or observed.at - since < patience_ms:
            return Judgement(AttemptMeaning.SUSPECT, doubt)
    accepted = doubt or _accepted_error(observed, known)
    if known.fingerprint is not None and observed.fingerprint == known.fingerprint:
        return Judgement(AttemptMeaning.NOISE, accepted=accepted)
    return Judgement(AttemptMeaning.CHANGED, accepted=accepted)


def _doubt(observed: Observation, known: KnownState) -> str | None:
    promised = known.media_type or known.expected
    if observed.media_type in PAGES and promised is not None and promised not in PAGES:
        return f"a page ({observed.media_type}) where {promised} was expected"
    if observed.size == 0 and known.sha256 is not None:
        return "empty, and was not before"
    if observed.shared_by >= MOST_SHARED and observed.size <= SHARED_BYTES and not observed.is_data:
        return f"the same body as {observed.shared_by} other resources of the host"
    # A resource that was accepted with such content may have more of it, and a first version may be anything.
    if known.suspicious is not None or known.sha256 is None:
        return None
    return _error(observed) or _lost(observed, known)


def _accepted_error(observed: Observation, known: KnownState) -> str | None:
    """Return why an accepted error message is marked; a series of them is accepted."""
    return (known.suspicious or _error(observed)) if observed.error is not None else None


def _error(observed: Observation) -> str | None:
    return f"an error message: {observed.error}" if observed.error is not None else None


def _lost(observed: Observation, known: KnownState) -> str | None:
    if observed.media_type != known.media_type:
        return None
    if observed.items is None or known.items is None or known.items < LOST_FROM:
        return None
    if observed.items * LOST_SHARE > known.items:
        return None
    return f"{observed.items:,} {observed.counted}, where the version before has {known.items:,}"


def error_in(content: bytes, media_type: str | None) -> str | None:
    """Return what a content says if it is an error message and nothing else; else None.

    >>> error_in(b"Error: database connection failed", "text/csv")
    'Error: database connection failed'
    >>> error_in(b'{"error": "no connection"}', "application/json")
    '{"error": "no connection"}'
    >>> error_in(b"error,count\\n404,2", "text/csv")
    """
    if not content or len(content) > MOST_ERROR:
        return None
    name, form = (media_type or "").lower(), form_of(media_type)
    if form in (Form.JSON, Form.JSON_LINES) or "json" in name:
        return _of_json(content)
    if "xml" in name:
        return _shown(content) if _XML.match(content) else None
    return _of_text(content) if form in _TEXTS and "html" not in name else None


def _of_text(content: bytes) -> str | None:
    text = content.decode("utf-8", "replace").strip("\ufeff \t\r\n\"'")
    lines = text.splitlines()
    is_message = len(lines) <= _MOST_LINES and not _is_table(lines) and _SENTENCE.match(text)
    return _shown(content) if is_message else None


def _is_table(lines: list[str]) -> bool:
    """Return whether several lines have as many delimiters each, all of them or those below a title."""
    return _are_rows(lines) or _are_rows(lines[1:])


def _are_rows(lines: list[str]) -> bool:
    counts = [{line.count(sign) for line in lines} for sign in ",;\t|"]
    return len(lines) > 1 and any(len(each) == 1 and 0 not in each for each in counts)


def _of_json(content: bytes) -> str | None:
    try:
        value = msgspec.json.decode(content)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return _shown(content) if isinstance(value, dict) and _is_error(value) else None


def _is_error(value: dict[str, Any]) -> bool:
    parts = {name.lower(): part for name, part in value.items()}
    if len(parts) > _MOST_KEYS:
        return False
    if any(_is_message(parts.get(name)) for name in _ERRORS):
        return not any(_is_data(part) for name, part in parts.items() if name not in _ERRORS)
    if any(map(_is_data, parts.values())):
        return False
    if any(_says_failure(parts.get(name)) for name in _STATUS) or parts.get("success") is False:
        return bool(parts.keys() & _MESSAGES)
    # Many things have a code, and measurements an error.
    return "message" in parts and (parts.get("error") is True or _says_failure(parts.get("code")))


def _is_message(value: Any) -> bool:
    """Return whether it may say what went wrong, as no number does."""
    return bool(value) and (
        isinstance(value, list | dict) or (isinstance(value, str) and _NUMBER.fullmatch(value) is None)
    )


def _is_data(value: Any) -> bool:
    return isinstance(value, list | dict) and len(value) > 1


def _says_failure(value: Any) -> bool:
    if isinstance(value, str):
        return value.lower() in _FAILED or (value.isdigit() and _says_failure(int(value)))
    return isinstance(value, int) and _LEAST_STATUS <= value <= _MOST_STATUS


def _shown(content: bytes) -> str:
    """The beginning of a message, in one line."""
    text = " ".join(content.decode("utf-8", "replace").strip("\ufeff").split())
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
