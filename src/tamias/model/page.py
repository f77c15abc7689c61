"""A page as those see it who tell its tags."""

import msgspec


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What was fetched. The body is whole or, where it is large, empty."""

    url: str
    media_type: str | None
    """As found, not as told."""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    def header(self, name: str) -> str | None:
        """The first value of a header, whatever its case."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), None)
