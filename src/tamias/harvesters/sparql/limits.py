"""What a copy may cost."""

import msgspec


class EndpointLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Of one endpoint."""

    page: int = 20_000
    """Statements first requested at once."""
    least_page: int = 20
    """A page is not made smaller than this for errors."""
    most_bytes: int = 64 << 20
    """Of one response."""
    most_graphs: int = 1_000_000
    most_statements: int = 1_000_000_000
    most_batch: int = 1_000
    """Graphs requested at once."""
    most_abandoned: int = 20
    """Graphs that cannot be had, before the rest is not tried any more."""
