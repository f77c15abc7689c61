"""Keeps out what no fetcher speaks, and ports where something else than a web server listens."""

import re

DEFAULT_SCHEMES = frozenset({"http", "https", "ftp", "ftps"})

# The "bad ports" of the WHATWG Fetch standard: a crawler must not be made to talk to mail or print servers.
# fmt: off
_BLOCKED_PORTS = frozenset({
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102,
    103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512,
    513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719,
    1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679,
    6697, 10080,
})
# fmt: on

_WEB_PORT = re.compile(r"(?:https?|ftps?)://[^/?]*:([0-9]{1,5})(?=[/?]|$)")


class SchemeFilter:
    """Lets in these schemes, on every port that browsers open."""

    def __init__(self, schemes: frozenset[str] = DEFAULT_SCHEMES) -> None:
        self._schemes = frozenset(scheme.lower() for scheme in schemes)

    def refuse(self, url: str, depth: int) -> str | None:
        scheme = url.partition(":")[0].lower()
        if scheme not in self._schemes:
            return f"scheme: {scheme[:40]!r} is not one of {', '.join(sorted(self._schemes))} (schemes)"
        port = _WEB_PORT.match(url)
        if port and int(port[1]) in _BLOCKED_PORTS:
            return f"scheme: port {port[1]} belongs to another service, browsers block it too"
        return None
