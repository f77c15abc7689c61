"""Log lines on stderr, as text or as JSON, the same in a command and in the processes that it starts.

A line may have fields beside its message (`fields`); they are members of the JSON object. Text from outside
cannot begin a line of its own, and its passwords are left out (`loggable`).
"""

import logging
import os
import re
from datetime import UTC, datetime
from typing import Any

import msgspec

_VARIABLE = "TAMIAS_LOG_LINES"
"""How the processes of a command learn what it was told."""
_PASSWORD = re.compile(r"(?<=[:/])([^\s/?#:@]*):[^\s/?#@]*@")
_LEVELS = {-1: logging.ERROR, 0: logging.WARNING, 1: logging.INFO, 2: logging.DEBUG}


class JsonLines(logging.Formatter):
    """A formatter that writes one JSON object a line: time, level, logger, message, fields, traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields: dict[str, Any] = {"time": at.replace("+00:00", "Z"), "level": record.levelname.lower()}
        fields |= {"logger": record.name, "message": record.getMessage()} | getattr(record, "fields", {})
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(fields).decode()


def configure(verbosity: int, *, as_json: bool) -> None:
    """Set up logging for this process, and for those that it starts later."""
    os.environ[_VARIABLE] = f"{verbosity} {'json' if as_json else 'text'}"
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if as_json else logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=_LEVELS[max(-1, min(2, verbosity))], handlers=[handler], force=True)


def configure_from_environment() -> None:
    """Set up logging in a process that a command started."""
    verbosity, _, form = os.environ.get(_VARIABLE, "0 text").partition(" ")
    configure(int(verbosity), as_json=form == "json")


def loggable(text: str) -> str:
    r"""Text from outside on one line of ASCII, with the passwords of URLs left out, however they are written.

    >>> loggable("/get/http://me:pw@a.example/ü and http:me:pw@b"), loggable("a\nb")
    ('/get/http://me:…@a.example/\\xfc and http:me:…@b', 'a\\nb')
    """
    return _PASSWORD.sub(r"\1:…@", ascii(text)[1:-1])


def log_fields(logger: logging.Logger, message: str, *words: object, **fields: object) -> None:
    """A line at `-v` with fields."""
    logger.info(message, *words, extra={"fields": fields})
