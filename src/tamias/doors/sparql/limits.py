"""What a copy may cost."""

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Of one endpoint."""

    page: int = 10_000
    """Statements first asked for at once."""
    least_page: int = 20
    """A page is not made smaller than this for errors."""
    most_bytes: int = 64 << 20
    """Of one answer."""
    most_graphs: int = 1_000_000
    most_statements: int = 1_000_000_000
    most_keys: int = 5_000
    """Terms named in one query."""
    most_abandoned: int = 20
    """Parts of the endpoint that cannot be had, before the rest is not tried any more."""
