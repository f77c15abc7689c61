"""Keeps a crawl near its seeds."""

from collections.abc import Sequence
from typing import Literal, get_args

from tamias.model.errors import ConfigError, UrlError
from tamias.model.url import fetch_url, host, host_key

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
