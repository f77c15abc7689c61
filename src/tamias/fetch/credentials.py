"""The options of fetchers, and credentials: the headers that requests to an origin, or below a path, carry.

They come from files that only you can read, or from the environment. Each hop of a request is looked up by
its own URL, so a redirect to another origin carries none. They never become part of a URL or a record.
"""

import base64
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import md5, sha256
from typing import Any
from urllib.parse import quote, quote_plus

import msgspec

from tamias.content.formats import accept_header
from tamias.model.errors import ConfigError, UrlError
from tamias.model.process import CREDENTIAL_PREFIX
from tamias.model.url import authority, fetch_url, host
from tamias.protocols import SignRequests

WITHHELD = "(withheld)"
"""Stands in a record where a response repeated a credential, or set a cookie for who had sent one."""
_LARGEST_FILE = 1 << 20
_LEAST_REPEATED = 6
"""Characters of a secret that is searched for in responses: shorter ones are in many texts by chance."""
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\x20-\x7e\xa0-\xff]+")
_COOKIE_VALUE = re.compile(r"[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*")
_SCHEME = re.compile(r"^[A-Za-z][\w-]* +(?=\S)")
_PART = re.compile(r"""[^\s;=,"]++(?!=[^\s;=,])""")
_DIRECTIVE = re.compile(r'(\w+)=(?:"([^"]*)"|([^\s,"]+))')
_HASHES = {"MD5": md5, "SHA-256": sha256}
"""Of Digest authentication."""
_OURS = frozenset(
    {
        *("host", "connection", "content-length", "content-type", "transfer-encoding", "te", "upgrade"),
        *("accept", "accept-encoding", "user-agent", "expect", "range", "if-none-match", "if-modified-since"),
    }
)
"""Headers that the fetcher sets itself."""


class FromEnvironment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The name of a variable, in place of a value."""

    env: str


Value = str | FromEnvironment


class CredentialTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A `[[credentials]]` table, as written."""

    url: str
    user: Value | None = None
    password: Value | None = None
    token: Value | None = None
    headers: dict[str, Value] = {}
    cookies: dict[str, Value] = {}

    def __repr__(self) -> str:
        return f"CredentialTable({self.url!r}, hidden)"

    def values(self) -> list[Value]:
        """Return the values that must stay secret."""
        single = [self.password, self.token]
        return [
            *(each for each in single if each is not None),
            *self.headers.values(),
            *self.cookies.values(),
        ]


class SourceCredential:
    """The credentials for requests to one origin, or below one path of it."""

    def __init__(
        self,
        url: str,
        headers: Sequence[tuple[str, str]],
        secrets: Iterable[str],
        login: tuple[str, str] | None = None,
    ) -> None:
        """`login` is the user and the password, for a server that asks for Digest authentication."""
        self.origin = authority(url)
        self.path = url.removeprefix(self.origin)
        self._headers = tuple(f"{name}: {value}".encode("latin-1") for name, value in headers)
        self._repeated = tuple(_forms(secrets))
        self._login = login
        self._challenge: dict[str, str] | None = None
        self._sends_nothing = False
        """Whether the next request is sent without the password, so that the server says what it wants."""
        self._answers = 0

    def __repr__(self) -> str:
        return f"SourceCredential({self.origin}{self.path}, hidden)"

    def covers(self, url: str) -> bool:
        """Tell if a `fetch_url` of this origin is at the path or below it.

        >>> credential = SourceCredential("https://example.org/api", [], [])
        >>> [credential.covers(f"https://example.org/api{rest}") for rest in ("", "/a", "?b", "s")]
        [True, True, True, False]
        """
        path = url.removeprefix(self.origin)
        if not path.startswith(self.path):
            return False
        return self.path.endswith("/") or path[len(self.path) :][:1] in ("", "/", "?")

    def headers_for(self, url: str, body: bytes | None) -> tuple[bytes, ...]:
        """Return what a request to a URL carries: the headers, or an answer to the last challenge."""
        if self._login is None or (self._challenge is None and not self._sends_nothing):
            return self._headers
        others = (line for line in self._headers if not line.startswith(b"Authorization:"))
        if self._challenge is None:
            return tuple(others)
        self._answers += 1
        method, path = "GET" if body is None else "POST", url.removeprefix(self.origin)
        said = _digest_answer(self._challenge, self._login, method, path, self._answers)
        return *others, f"Authorization: Digest {said}".encode("latin-1")

    def take_challenge(self, said: str | None) -> bool:
        """Take note of the WWW-Authenticate of a 401; return whether another request may be answered.

        That is so for Digest authentication. Virtuoso answers Basic without a word of what it wants: then
        the next request carries no password.
        """
        scheme, _, rest = (said or "").partition(" ")
        if self._login is None:
            return False
        if scheme.lower() != "digest":
            self._sends_nothing = said is None and not self._sends_nothing
            return self._sends_nothing
        challenge = {name.lower(): quoted or plain for name, quoted, plain in _DIRECTIVE.findall(rest)}
        if not {"realm", "nonce"} <= challenge.keys() or challenge.get("algorithm", "MD5") not in _HASHES:
            return False
        self._challenge, self._answers = challenge, 0
        return True

    def redacted(self, headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        """The headers of a response as they may be recorded: cookies of our session are not."""
        return tuple((name, WITHHELD if self._is_secret(name, value) else value) for name, value in headers)

    def _is_secret(self, name: str, value: str) -> bool:
        plain = value.lower()
        return name.lower() in ("set-cookie", "set-cookie2") or any(form in plain for form in self._repeated)


class SourceCredentials:
    """The set of credentials; of several that cover a URL, the one with the longest path is used."""

    def __init__(self, each: Iterable[SourceCredential] = ()) -> None:
        self._by_origin: dict[str, list[SourceCredential]] = {}
        for credential in sorted(each, key=lambda one: -len(one.path)):
            known = self._by_origin.setdefault(credential.origin, [])
            if any(credential.path == other.path for other in known):
                raise ConfigError(f"two [[credentials]] have the url {credential.origin}{credential.path}")
            known.append(credential)

    def __repr__(self) -> str:
        return f"SourceCredentials({', '.join(self._by_origin)})"

    @property
    def hosts(self) -> frozenset[str]:
        """Names of the hosts that get one."""
        return frozenset(host(origin) for origin in self._by_origin)

    def covering(self, url: str) -> SourceCredential | None:
        """Return the credential for this `fetch_url`, if there is one."""
        if not self._by_origin:
            return None
        candidates = self._by_origin.get(authority(url), ())
        return next((each for each in candidates if each.covers(url)), None)


def load_credentials(files: Sequence[str], environment: Mapping[str, str] = os.environ) -> SourceCredentials:
    """Reads the `[[credentials]]` of the files. Raises `ConfigError`, which never contains a value."""
    tables = [(file, each) for file in files for each in _tables(file)]
    return SourceCredentials(_credential(file, each, environment) for file, each in tables)


def _tables(file: str) -> list[CredentialTable]:
    import tomllib

    content, mode = _read(file)
    try:
        document: dict[str, Any] = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        # The parser's own sentence may quote the file.
        raise ConfigError(f"the credentials {file} are not TOML") from None
    if "credentials" not in document:
        raise ConfigError(f"{file} has no [[credentials]]")
    try:
        tables = msgspec.convert(document["credentials"], list[CredentialTable])
    except msgspec.ValidationError as error:  # names types and positions, no values
        raise ConfigError(f"{file}, [[credentials]]: {error}") from None
    if mode & 0o077 and any(isinstance(value, str) for each in tables for value in each.values()):
        raise ConfigError(f"others can read the credentials {file}: run 'chmod 600 {file}'")
    return tables


def _read(file: str) -> tuple[bytes, int]:
    try:
        with open(file, "rb") as opened:
            mode = stat.S_IMODE(os.fstat(opened.fileno()).st_mode)
            content = opened.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise ConfigError(f"cannot read the credentials {file}: {error.strerror}") from None
    if len(content) > _LARGEST_FILE:
        raise ConfigError(f"the credentials {file} are larger than {_LARGEST_FILE} bytes")
    return content, mode


def _credential(file: str, table: CredentialTable, environment: Mapping[str, str]) -> SourceCredential:
    url = _prefix(file, table.url)

    def value(what: str, given: Value) -> str:
        text = given if isinstance(given, str) else _variable(file, url, given.env, environment)
        if not _VALUE.fullmatch(text):
            raise ConfigError(f"{file}: {what} for {url} is empty or has characters that cannot be sent")
        return text

    secret_texts = []
    headers = []
    login: tuple[str, str] | None = None
    for name, declared in table.headers.items():
        if not _NAME.fullmatch(name) or name.lower() in _OURS:
            raise ConfigError(f"{file}: {name!r} for {url} is not a header that you can set")
        headers.append((name, value(f"the header {name}", declared)))
        secret_texts += [headers[-1][1], *_secret_parts(name, headers[-1][1])]
    if table.token is not None:
        secret_texts.append(value("the token", table.token))
        headers.append(("Authorization", f"Bearer {secret_texts[-1]}"))
    if (table.user is None) != (table.password is None):
        raise ConfigError(f"{file}: user and password for {url} belong together")
    if table.user is not None and table.password is not None:
        user, password = value("the user", table.user), value("the password", table.password)
        if ":" in user:
            raise ConfigError(f"{file}: the user for {url} has a colon, which Basic authentication forbids")
        packed = base64.b64encode(f"{user}:{password}".encode()).decode()
        secret_texts += [password, packed]
        login = user, password
        headers.append(("Authorization", f"Basic {packed}"))
    cookies = {name: value(f"the cookie {name}", declared) for name, declared in table.cookies.items()}
    if cookies:
        headers.append(("Cookie", _cookie_header(file, url, cookies)))
        secret_texts += cookies.values()
    _check_headers(file, url, headers)
    return SourceCredential(url, headers, secret_texts, login)


def _cookie_header(file: str, url: str, cookies: Mapping[str, str]) -> str:
    for name, text in cookies.items():
        if not (_NAME.fullmatch(name) and _COOKIE_VALUE.fullmatch(text)):
            raise ConfigError(f"{file}: the cookie {name!r} for {url} has characters that no cookie may have")
    return "; ".join(f"{name}={text}" for name, text in cookies.items())


def _check_headers(file: str, url: str, headers: list[tuple[str, str]]) -> None:
    names = [name.lower() for name, _ in headers]
    if not names or len(names) != len(set(names)):
        what = "sends the same header twice" if names else "has no user, token, header or cookie"
        raise ConfigError(f"{file}: the table for {url} {what}")


def _prefix(file: str, text: str) -> str:
    try:
        url = fetch_url(text)
    except UrlError:  # its text may be a password
        url = ""
    if not url.startswith(("http://", "https://")) or "?" in text or "#" in text or "@" in text:
        which = f"; that of '{host(url)}' is not" if url else ""
        raise ConfigError(
            f"{file}, [[credentials]]: a url must be http(s)://HOST[/PATH], without user, query or fragment"
            f"{which}"
        )
    return url


def _variable(file: str, url: str, name: str, environment: Mapping[str, str]) -> str:
    if not name.startswith(CREDENTIAL_PREFIX):
        raise ConfigError(
            f"{file}: variables for {url} must begin with {CREDENTIAL_PREFIX}, so that processes that do not"
            " need them are started without them"
        )
    if name not in environment:
        raise ConfigError(f"{file}: the environment variable {name} for {url} is not set")
    return environment[name].strip()


def _digest_answer(
    challenge: Mapping[str, str], login: tuple[str, str], method: str, path: str, number: int
) -> str:
    """Return the proof that one has the password (RFC 7616, with `qop` as `auth`, or without it)."""

    def hashed(*parts: str) -> str:
        return _HASHES[challenge.get("algorithm", "MD5")](":".join(parts).encode()).hexdigest()

    (user, password), nonce = login, challenge["nonce"]
    secret, target = hashed(user, challenge["realm"], password), hashed(method, path)
    said = {"username": user, "realm": challenge["realm"], "nonce": nonce, "uri": path}
    if "qop" in challenge:
        turn, own = f"{number:08x}", secrets.token_hex(8)
        said |= {"cnonce": own, "response": hashed(secret, nonce, turn, own, "auth", target)}
    else:
        turn, said["response"] = "", hashed(secret, nonce, target)
    said |= {name: challenge[name] for name in ("opaque", "algorithm") if name in challenge}
    words = [f'{name}="{value}"' for name, value in said.items()]
    return ", ".join([*words, "qop=auth", f"nc={turn}"] if turn else words)


def _secret_parts(name: str, value: str) -> list[str]:
    """Return the secret parts of a header, without a scheme such as `Bearer` or names before `=`."""
    if name.lower() in ("authorization", "proxy-authorization"):
        value = _SCHEME.sub("", value)
    return _PART.findall(value)


def _forms(secrets: Iterable[str]) -> set[str]:
    """Return the lower-case forms in which a response may repeat the secrets."""
    forms = set()
    for each in secrets:
        if len(each) >= _LEAST_REPEATED:
            forms |= {
                each,
                each.encode().decode("latin-1"),
                base64.b64encode(each.encode()).decode().rstrip("="),
            }
            for code in ("utf-8", "latin-1"):
                forms |= {quote(each, safe, code) for safe in ("", "/")}
                forms |= {quote_plus(each, safe, code) for safe in ("", "/")}
    return {form.lower() for form in forms}


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
    proxy: str = ""
    """The address of a proxy for http and https; empty: connect directly."""
    proxy_login: str = ""
    """User and password for it, with a colon between."""
    proxy_resolves: bool = False
    """Whether the proxy is sent names, not addresses that were checked."""
    signer: SignRequests | None = None
    """What signs requests."""
    verify_tls: bool = True
    ca_file: str | None = None
    """The certificates to trust instead of the system's."""
    http2: bool = False
    """Offer HTTP/2 to https servers. It pays only for several requests to one host at once."""
    connections: int = 256
    """How many connections are kept open for reuse."""
