"""The fetch options that follow from the settings, and the name of the crawler in requests."""

import re
from collections.abc import Callable
from pathlib import Path

import msgspec

from tamias import __version__
from tamias.archive.moments import shown
from tamias.fetch.credentials import HttpOptions, load_credentials
from tamias.model.errors import ConfigError, UsageError
from tamias.model.private_file import read_private_file
from tamias.model.url import host
from tamias.permit.addresses import is_address
from tamias.plugins import load_all
from tamias.settings import Settings

_PROXY = re.compile(r"(https?|socks5)://([\w.-]+|\[[0-9a-fA-F:]+\]):[0-9]+/?")
_LONGEST_LOGIN = 4096


def user_agent(settings: Settings) -> str:
    """Return one name everywhere, with a way to reach the crawler's operator."""
    return f"tamias/{__version__} (+{settings.fetch.contact})"


def http_options(settings: Settings, spool: Path) -> HttpOptions:
    """Return what a fetch may cost."""
    fetch = settings.fetch
    by_address = settings.frontier.queue == "ip" or settings.frontier.per_address
    return shown(
        HttpOptions,
        fetch,
        user_agent=user_agent(settings),
        spool_dir=str(spool),
        ack_timeout=settings.frontier.lease / 2,
        total_timeout=fetch.timeout,
        resolve=_pairs(fetch.resolve),
        address_of=address_of(settings) if by_address else None,
        credentials=load_credentials(fetch.credentials),
        proxy=_proxy(fetch.proxy),
        proxy_login=_login(fetch.proxy_login),
        signer=next(filter(None, (make(settings) for make in load_all("signers").values())), None),
        connections=fetch.concurrency,
    )


def address_of(settings: Settings) -> Callable[[str], str]:
    """Return what gives the address of a URL's host: that of `--resolve`, or one of DNS; its name if none.

    Where queues or leases go by addresses, queue, lease and connection have the same one.
    """
    pairs = _pairs(settings.fetch.resolve)

    def address(url: str) -> str:
        from tamias.fetch.multi import resolve_name  # loads libcurl

        name = host(url)
        return pairs.get(name) or resolve_name(name)

    return address


def with_own_credentials(settings: Settings, files: tuple[str, ...]) -> Settings:
    """The settings of another machine with credentials of this one.

    Where the other machine says which address a host has, it could have the credential sent to itself: with
    credentials, only DNS says so.
    """
    resolve = () if load_credentials(files).hosts else settings.fetch.resolve
    fetch = msgspec.structs.replace(settings.fetch, credentials=files, resolve=resolve)
    return msgspec.structs.replace(settings, fetch=fetch)


def _proxy(address: str) -> str:
    if address and not _PROXY.fullmatch(address):
        raise ConfigError("fetch.proxy must be http://HOST:PORT or socks5://HOST:PORT, without a login")
    return address


def _login(name: str) -> str:
    """Read the login of a proxy from its file."""
    if not name:
        return ""
    login = read_private_file(name, "login in", _LONGEST_LOGIN).decode(errors="replace").strip()
    if ":" not in login:
        raise ConfigError(f"{name} must contain USER:PASSWORD")
    return login


def _pairs(resolve: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for pair in resolve:
        name, colon, address = pair.partition(":")
        if not (name and colon and is_address(address.strip("[]"))):
            raise UsageError(f"--resolve takes HOST:ADDRESS, an IP address, not '{pair}'")
        pairs[name.lower()] = address.strip("[]")
    return pairs
