"""The credentials for a server that takes what we write; they are never part of a message."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from tamias.model.errors import ConfigError
from tamias.service_client import Credentials

_UNPRINTABLE = re.compile(r"[^\x20-\x7e\xa0-\U0010ffff]+")


def credentials(variable: str, environ: Mapping[str, str] = os.environ) -> Credentials | None:
    """`user:password`, or a bearer token without a colon, from the environment or a file.

    Read from `variable`, or from the file that the variable of that name with `_FILE` names.
    """
    text = environ.get(variable)
    if text is None and (path := environ.get(f"{variable}_FILE")):
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"the file that {variable}_FILE names cannot be read: {path}") from error
    text = (text or "").strip()
    if not text:
        return None
    if _UNPRINTABLE.search(text):
        raise ConfigError(f"{variable} holds characters that cannot be sent; write user:password, or a token")
    user, colon, password = text.partition(":")
    return Credentials(user=user, password=password) if colon else Credentials(token=text)
