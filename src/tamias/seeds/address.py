"""A seed that is an address itself, or a kind and an address: `sparql:https://example.org/sparql`."""

import re
from collections.abc import Iterator
from pathlib import Path

from tamias.model.errors import UrlError
from tamias.model.item import TRUSTED, Seed
from tamias.model.url import fetch_url

_WITH_KIND = re.compile(r"([a-z][a-z0-9-]*):(?=[a-z]+://)")


class AddressSeeds:
    """Carries out `protocols.SeedSource` for one URL."""

    def seeds(self, argument: str) -> Iterator[Seed]:
        try:
            yield seed_of(argument)
        except UrlError as error:
            raise UrlError(f"{error}; {_instead_of(argument)}") from error


def _instead_of(text: str) -> str:
    """Return what to type instead of what is no URL."""
    if Path(text).is_file():
        return (
            f"it is a file: 'tamias read {text}' reads it, 'tamias crawl --seeds {text}' crawls what it lists"
        )
    return "a seed is a full address such as https://example.org/data.ttl"


def seed_of(text: str, tags: tuple[str, ...] = ()) -> Seed:
    """The seed that a text names. Raises `UrlError` when it is no address.

    >>> seed_of("sparql:https://example.org/sparql").kind
    'sparql'
    """
    found = _WITH_KIND.match(text)
    address = text[found.end() :] if found else text
    fetch_url(address)
    if found is None:
        return Seed(address=address, tags=tags)
    return Seed(address=address, kind=found[1], tags=(TRUSTED, *tags))
