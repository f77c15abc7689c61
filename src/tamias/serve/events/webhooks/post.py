"""One POST to an address that somebody gave us: bounded in time, not redirected, not into our own network."""

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Final

import msgspec

from tamias.service_client import NoResponse, ServiceClient

SECONDS: Final = 10
"""For the whole of it."""
_MOST_ANSWER: Final = 64 * 1024

Forbidden = Callable[[str], str | None]
"""The reason not to connect to an IP address."""


class Posted(msgspec.Struct, frozen=True):
    """How it went: a status, or the trouble that there was instead of one."""

    status: int | None
    trouble: str | None = None

    @property
    def is_taken(self) -> bool:
        """Whether the receiver says that it has it."""
        return self.status is not None and 200 <= self.status < 300


def post(url: str, body: bytes, headers: Mapping[str, str], forbidden: Forbidden) -> Posted:
    """Sends the body as JSON. Never raises for what the network does."""

    def refused(address: str) -> str | None:
        reason = forbidden(address)
        return reason and f"{reason}: not connected to without --allow-private"

    told = {**headers, "Content-Type": "application/json"}
    with closing(ServiceClient(forbidden=refused)) as client:
        try:
            response = client.send("POST", url, headers=told, body=body, seconds=SECONDS, most=_MOST_ANSWER)
        except NoResponse as error:
            return Posted(None, str(error)[:300])
    posted = Posted(response.status)
    return posted if posted.is_taken else Posted(response.status, f"the receiver answered {response.status}")
