"""A seed that is an address itself."""

from collections.abc import Iterator

from tamias.model.errors import UrlError
from tamias.model.url import fetch_url


class AddressSeeds:
    """Carries out `protocols.SeedSource` for one URL."""

    def addresses(self, argument: str) -> Iterator[str]:
        try:
            fetch_url(argument)
        except UrlError as error:
            raise UrlError(
                f"{error}; a seed is a full address such as https://example.org/data.ttl"
            ) from error
        yield argument
