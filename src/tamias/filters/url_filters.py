"""The filters of the core: schemes and ports, nearness to the seeds, patterns, shapes of endless sites."""

import re
from collections.abc import Sequence
from typing import Literal, get_args

from tamias.model.errors import ConfigError, UrlError
from tamias.model.url import fetch_url, host, host_key

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


Scope = Literal["any", "host", "domain", "prefix"]


class ScopeFilter:
    """Lets in what shares its host, its pay-level domain, or its folder with a seed; `any` lets in all.

    A folder is the seed up to the last slash of its path; whether it is http or https does not matter.
    """

    def __init__(self, scope: Scope, seeds: Sequence[str]) -> None:
        if scope not in get_args(Scope):
            raise ConfigError(f"scope {scope!r} does not exist: use one of {', '.join(get_args(Scope))}")
        self._scope = scope
        urls = [fetch_url(seed) for seed in seeds]
        self._hosts = frozenset(map(host, urls))
        self._domains = frozenset(map(host_key, urls))
        self._folders = tuple(set(map(_folder, urls)))

    def refuse(self, url: str, depth: int) -> str | None:
        try:
            inside = self._is_inside(url)
        except UrlError as error:
            return f"scope {self._scope}: {error}"
        return None if inside else f"scope {self._scope}: no seed has the same {_SHARED[self._scope]}"

    def _is_inside(self, url: str) -> bool:
        match self._scope:
            case "any":
                return True
            case "host":
                return host(url) in self._hosts
            case "domain":
                return host_key(url) in self._domains
            case "prefix":
                return _as_https(url).startswith(self._folders)


_SHARED = {"host": "host", "domain": "pay-level domain", "prefix": "folder"}


def _folder(url: str) -> str:
    start = _as_https(url).partition("?")[0]
    beyond_host = start.find("/", start.find("://") + 3)
    return start[: start.rindex("/") + 1] if beyond_host >= 0 else start + "/"


def _as_https(url: str) -> str:
    return "https:" + url[len("http:") :] if url.startswith("http:") else url


class PatternFilter:
    """Lets in what some `include` finds and no `exclude` does; without an `include`, all but the excluded.

    The expressions are Python's and are searched anywhere in the URL; `^` and `$` tie them to its ends.
    They are the user's own and trusted: one such as `(a+)+$` can take hours on a single hostile URL.
    """

    def __init__(self, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> None:
        self._include = [_compiled(pattern, "include") for pattern in include]
        self._exclude = [_compiled(pattern, "exclude") for pattern in exclude]

    def refuse(self, url: str, depth: int) -> str | None:
        if (excluded := self.excluded(url)) is not None:
            return excluded
        if self._include and not any(pattern.search(url) for pattern in self._include):
            return "pattern: no include matches"
        return None

    def excluded(self, url: str) -> str | None:
        """The `exclude` that finds the URL, whatever is included."""
        for pattern in self._exclude:
            if pattern.search(url):
                return f"pattern: exclude {pattern.pattern!r} matches"
        return None


def _compiled(pattern: str, setting: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        where = "" if error.pos is None else f" at position {error.pos}"
        raise ConfigError(
            f"{setting} {pattern!r} is not a valid regular expression: {error.msg}{where}"
        ) from None
    except (OverflowError, RecursionError) as error:
        raise ConfigError(f"{setting} {pattern!r} is not a valid regular expression: {error}") from None


def parts_in_order(parts: Sequence[str], text: str, *, from_start: bool, to_end: bool) -> bool:
    """Return whether the parts stand in the text one after another; in one pass, whatever the text is.

    >>> parts_in_order(("example.org/", "/print"), "example.org/a/print", from_start=True, to_end=True)
    True
    """
    if (from_start and not text.startswith(parts[0])) or (to_end and not text.endswith(parts[-1])):
        return False
    place = 0
    for part in parts[:-1] if to_end else parts:
        place = text.find(part, place) + len(part)
        if place < len(part):
            return False
    return not to_end or len(text) - len(parts[-1]) >= place


class TrapFilter:
    """Sets limits to the shape of a URL and to its distance from the seeds.

    `max_repeats`: how often one path segment, or one run of segments, may follow upon itself.
    """

    def __init__(
        self,
        max_length: int = 2083,
        max_segments: int = 20,
        max_repeats: int = 2,
        max_depth: int | None = None,
        max_query_pairs: int = 30,
    ) -> None:
        if max_repeats < 1:
            raise ConfigError(f"max_repeats is {max_repeats}, but every segment is there once: use 1 or more")
        self._max_length = max_length
        self._max_segments = max_segments
        self._max_repeats = max_repeats
        self._max_depth = max_depth
        self._max_query_pairs = max_query_pairs

    def refuse(self, url: str, depth: int) -> str | None:
        if self._max_depth is not None and depth > self._max_depth:
            return f"trap: depth {depth} is over max_depth {self._max_depth}"
        if len(url) > self._max_length:
            return f"trap: {len(url)} characters are over max_length {self._max_length}"
        path, _, query = url.partition("://")[2].partition("?")
        return self._refuse_query(query) or self._refuse_path(path)

    def _refuse_query(self, query: str) -> str | None:
        pairs = query.count("&") + 1 if query else 0
        if pairs > self._max_query_pairs:
            return f"trap: {pairs} query pairs are over max_query_pairs {self._max_query_pairs}"
        return None

    def _refuse_path(self, path: str) -> str | None:
        segments = [segment for segment in path.split("/")[1:] if segment]
        if len(segments) > self._max_segments:
            return f"trap: {len(segments)} path segments are over max_segments {self._max_segments}"
        repeated = _repeated(segments, self._max_repeats)
        if repeated:
            return f"trap: /{repeated[:100]} repeats more often than max_repeats {self._max_repeats}"
        return None


def _repeated(segments: Sequence[str], most: int) -> str | None:
    """The shortest run of segments that follows upon itself until it is there more than `most` times."""
    if len(segments) - len(set(segments)) < most:
        return None
    for length in range(1, len(segments) // (most + 1) + 1):
        same = 0
        for start in range(len(segments) - length):
            same = same + 1 if segments[start] == segments[start + length] else 0
            if same == length * most:
                return "/".join(segments[start + 1 : start + 1 + length])
    return None
