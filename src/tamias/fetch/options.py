"""The limits of a fetch, and the name of Tamias in requests."""

from collections.abc import Callable

import msgspec

from tamias.content.formats import accept_header
from tamias.fetch.credentials import SourceCredentials
from tamias.protocols import SignRequests


class HttpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a fetcher. Times are in seconds."""

    user_agent: str
    spool_dir: str
    """Where large bodies are kept until they are stored; made when it is not there."""
    contact: str = ""
    """The guest's password for FTP servers, which want to know whom to write to; else the user agent."""
    accept: str = msgspec.field(default_factory=accept_header)
    """Sent for a request that names no media types of its own."""
    max_bytes: int = 100_000_000
    """Of a body after content coding."""
    max_listing_bytes: int = 16 << 20
    """Of the list of one FTP directory, as it comes."""
    max_listing_entries: int = 50_000
    memory_bytes: int = 1 << 20
    """A larger body goes to a spool file."""
    connect_timeout: float = 10.0
    first_byte_timeout: float = 30.0
    """Counted from the start, connecting included."""
    ack_timeout: float = 15.0
    """A connection ends where what was sent is not acknowledged for so long: less than a lease."""
    query_timeout: float = 120.0
    """The same for a query, whose answer is computed before its first byte."""
    total_timeout: float = 300.0
    """Of all hops together, without the waiting between them."""
    min_rate: int = 1024
    """Bytes a second, looked at every `min_rate_window` seconds."""
    min_rate_window: float = 30.0
    max_redirects: int = 10
    max_header_bytes: int = 64 * 1024
    """Of one answer: interim responses, headers and trailers together."""
    max_ratio: int = 100
    """Decoded bytes for each byte on the wire, once `ratio_floor` bytes are decoded."""
    ratio_floor: int = 10 << 20
    resolve: dict[str, str] = {}
    """Host to address, on every port, instead of asking DNS."""
    address_of: Callable[[str], str] | None = None
    """Which address to connect to for a URL, where it matters which; the name of the host if it has none."""
    credentials: SourceCredentials = msgspec.field(default_factory=SourceCredentials)
    """What requests to some origins carry."""
    signer: SignRequests | None = None
    """What signs requests."""
    verify_tls: bool = True
    ca_file: str | None = None
    """The certificates to trust instead of the system's."""
    http2: bool = False
    """Offer HTTP/2 to https servers. It pays only for several requests to one host at once."""
    connections: int = 256
    """How many connections are kept open for reuse."""
