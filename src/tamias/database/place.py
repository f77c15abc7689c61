"""The URL of a database, as users write it."""

import re
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tamias.model.errors import DatabaseError

# Words of the URL that are ours, not the client library's.
_OURS = frozenset({"prepare", "nodes"})
# One @ at most and no / before it: else a part of the password would be read as a host's name, and shown.
_URL = re.compile(r"postgres(ql)?://([^@/]*@)?[^@]*")


def read_url(url: str | None) -> dict[str, Any]:
    """Return the parameters of a connection. Raise `DatabaseError`, which never contains the password."""
    if not url:
        return {"nodes": "off"}
    try:
        if _URL.fullmatch(url):
            parts = urlsplit(url)
            options = parse_qsl(parts.query, keep_blank_values=True)
            ours = {name: value for name, value in options if name in _OURS and value in {"on", "off"}}
            if ours:
                others = urlencode([each for each in options if each[0] not in ours], quote_via=quote)
                url = urlunsplit(parts._replace(query=others))
            return {**conninfo_to_dict(url), **ours}
    except (psycopg.ProgrammingError, ValueError):
        pass  # its words may hold the password
    raise DatabaseError(
        "--db is not the URL of a PostgreSQL database; write postgresql://user:password@host:port/name, "
        "with @ and / in a password as %40 and %2F"
    )


def place_words(place: dict[str, Any]) -> str:
    """Name a database to users."""
    host, port = place.get("host") or "localhost", place.get("port") or 5432
    return f"the database {place.get('dbname') or ''} at {host}:{port}"
