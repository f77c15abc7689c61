"""Events of watched resources, as clients of the service and of the library follow them."""

from typing import Literal

import msgspec

Kind = Literal["version", "state"]


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An event of a resource: a new version, or another state."""

    id: int
    kind: Kind
    at: str
    dataset: str
    """The id of the resource."""
    url: str
    host: str
    title: str | None = None
    number: int | None = None
    sha256: str | None = None
    byte_size: int | None = None
    media_type: str | None = None
    noise: str | None = None
    """Why only its bytes differ from those of the version before; None where its content does."""
    state: str | None = None
