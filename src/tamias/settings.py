"""Settings: name, default, what each does. The documentation is generated from these structs.

A value comes from the default, then the file, then the environment, then the flag; `Resolved` knows which.
"""

import difflib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

import msgspec
from msgspec import Meta

from tamias.model.errors import ConfigError
from tamias.model.process import CREDENTIAL_PREFIX

CONTACT_PAGE = "https://w3id.org/tamias/crawler"

T = TypeVar("T", bound="FeatureSettings")


def about(description: str, **limits: Any) -> Meta:
    """Describe a setting; `limits` are those of `msgspec.Meta`."""
    return Meta(description=description, **limits)


Depth = Annotated[int, Meta(ge=-1)]
Positive = Annotated[int, Meta(ge=1)]
Rate = Annotated[float, Meta(gt=0)]
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "owler": {
        "frontier.queue": "domain",
        "frontier.round": 300.0,
        "frontier.per_round": 10,
        "fetch.delay": 1.0,
    }
}
"""What a preset sets where neither file, environment nor flag says otherwise."""


class CrawlSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Reach of a crawl, and when it ends."""

    preset: Annotated[
        Literal["none", "owler"],
        about("defaults for other settings, by the name of a known crawler (docs/frontier.md)"),
    ] = "none"
    depth: Annotated[Depth | None, about("follow links this many steps from a seed; -1: no limit")] = None
    max_urls: Annotated[Positive | None, about("stop after visiting this many URLs")] = None
    max_time: Annotated[Annotated[float, Meta(ge=0)] | None, about("stop after this many seconds")] = None
    max_wait: Annotated[
        float,
        about(
            "seconds to wait for hosts that asked for a pause or cannot be reached, or for disk space", ge=0
        ),
    ] = 600.0
    requisites: Annotated[bool, about("also fetch what pages need to be shown: images, styles, scripts")] = (
        False
    )
    sinks: Annotated[
        tuple[str, ...],
        about("also write to turtle-files, hdt-files, sparql:URL, warc, archive or nquads (none)"),
    ] = ()
    continuous: Annotated[bool, about("do not end: visit every URL again when it is due")] = False
    budget: Annotated[Rate | None, about("visits a day of a continuous crawl; default: no limit")] = None
    new_share: Annotated[
        float,
        about("share of the budget for URLs never visited before; the rest is for revisits", ge=0, le=1),
    ] = 0.3
    workers: Annotated[Positive | None, about("worker processes; default: one for each core")] = None
    retries: Annotated[int, about("retry a URL this many times if that can help", ge=0)] = 3
    retry_wait: Annotated[float, about("seconds before the first retry; doubled each time", ge=0)] = 10.0
    unreachable: Annotated[
        tuple[int, float],
        about("give up an unreachable host after this many tries over this many hours"),
    ] = (3, 24.0)
    room: Annotated[
        float,
        about("megabytes to keep free on the disk; with less, a crawl pauses until twice that is free", ge=0),
    ] = 50.0


class SeedsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Places where a crawl looks first: sitemaps on every host, well-known URLs on the hosts of its seeds."""

    sitemaps: Annotated[bool, about("read the sitemaps that robots.txt names")] = True
    host_sitemaps: Annotated[int, about("maximum files that sitemap indexes add for a host", ge=0)] = 1_000
    host_sitemap_urls: Annotated[int, about("maximum URLs that the sitemaps of a host add", ge=0)] = 1_000_000
    probe: Annotated[
        bool, about("request well-known URLs: /sitemap.xml, /.well-known/void and a few more")
    ] = True


class FiltersSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Filters for URLs that may enter the frontier."""

    scope: Annotated[
        Literal["any", "host", "domain", "prefix"], about("how far from the seeds a link may lead")
    ] = "any"
    include: Annotated[
        tuple[str, ...], about("visit only URLs that match one of these regular expressions")
    ] = ()
    exclude: Annotated[tuple[str, ...], about("skip URLs that match one of these regular expressions")] = ()
    schemes: Annotated[tuple[str, ...], about("schemes that may be fetched")] = (
        "http",
        "https",
        "ftp",
        "ftps",
    )
    max_length: Annotated[int, about("maximum length of a URL, in characters", ge=1)] = 2083
    max_segments: Annotated[int, about("maximum segments in a path", ge=1)] = 20
    max_repeats: Annotated[int, about("maximum repeats of a path segment", ge=1)] = 2
    max_query_pairs: Annotated[int, about("maximum parameters in a query", ge=0)] = 30
    session_names: Annotated[tuple[str, ...], about("parameters that only identify a session")] = (
        "sessionid",
        "jsessionid",
        "phpsessid",
        "sid",
    )
    blocklists: Annotated[
        tuple[str, ...], about("files, folders and addresses of block lists; NAME=PATH gives one a name")
    ] = ()
    blocklist_interval: Annotated[float, about("seconds between checks for changed block lists", ge=1)] = 60.0
    blocklist_refresh: Annotated[
        float, about("seconds between requests for a block list at an address", ge=60)
    ] = 86_400.0
    blocklist_cache: Annotated[
        str, about("folder for fetched block lists; empty: `tamias/blocklists` in your cache folder")
    ] = ""
    blocklist_entries: Annotated[int, about("maximum entries of all block lists together", ge=1)] = 20_000_000


class FrontierSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Leases of hosts by the frontier."""

    buckets: Annotated[
        int, about("parts of the frontier, a power of two; fixed when the data is created", ge=1)
    ] = 1
    queue: Annotated[Literal["domain", "host", "ip"], about("what shares one queue and one delay")] = "domain"
    lease: Annotated[float, about("seconds of a lease; a worker renews it in time", gt=1)] = 30.0
    known_links: Annotated[int, about("known links that a worker remembers", ge=0)] = 200_000
    require: Annotated[tuple[str, ...], about("workers visit only URLs that have all these tags")] = ()
    forbid: Annotated[tuple[str, ...], about("workers skip URLs that have one of these tags")] = ()
    round: Annotated[
        float, about("minimum seconds from one round of visits to a queue to the next", ge=0, le=86_400)
    ] = 0.0
    per_round: Annotated[int, about("maximum URLs of a queue in one round", ge=1, le=1000)] = 10
    buffer: Annotated[
        int, about("maximum URLs a worker holds; 0: a round for each of its concurrent requests", ge=0)
    ] = 0
    per_address: Annotated[
        int,
        about("maximum queues of one IP address leased at once; 0: no cap", ge=0),
    ] = 0


class TagsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Tags that URLs get."""

    rules: Annotated[
        tuple[str, ...], about("a regular expression and the tag for URLs that match it: '/sitemap sitemap'")
    ] = ()
    content: Annotated[
        tuple[str, ...],
        about("tags from the content of a page: language, type, markup, near, or a tagger of a plug-in"),
    ] = ()
    inherit: Annotated[bool, about("links inherit the tags from the content of their page")] = False


class PermitSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Checks before a request is sent."""

    robots: Annotated[bool, about("obey robots.txt")] = True
    granted: Annotated[
        tuple[str, ...], about("hosts whose operators permit what their robots.txt forbids")
    ] = ()
    host_visits: Annotated[int, about("maximum visits to one queue, whatever they find", ge=1)] = 10_000_000
    host_budget: Annotated[
        int,
        about(
            "visits to one queue before it must earn more with new words, statements or links from other"
            " hosts; 0: no budget",
            ge=0,
        ),
    ] = 1000
    monotony: Annotated[
        int,
        about(
            "pages that differ only in numbers and have no data, before such pages are skipped; 0: never",
            ge=0,
        ),
    ] = 200
    allow_private: Annotated[bool, about("allow private, loopback and link-local addresses")] = False


class FetchSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and manners of fetching documents."""

    delay: Annotated[float, about("minimum seconds between two requests to one queue", ge=0)] = 1.0
    concurrency: Annotated[
        int,
        about("concurrent requests in each worker; hosts that have not answered yet get as many more", ge=1),
    ] = 256
    contact: Annotated[
        str, about("how site owners can reach you: a URL or e-mail address, sent with every request")
    ] = CONTACT_PAGE
    resolve: Annotated[tuple[str, ...], about("HOST:ADDRESS pairs used instead of DNS")] = ()
    credentials: Annotated[
        tuple[str, ...],
        about("files with [[credentials]] for sources, mode 0600 (docs/credentials.md)"),
    ] = ()
    proxy: Annotated[
        str, about("proxy for http and https: http://HOST:PORT (with CONNECT) or socks5://HOST:PORT")
    ] = ""
    proxy_login: Annotated[str, about("file with USER:PASSWORD for the proxy, mode 0600")] = ""
    proxy_resolves: Annotated[
        bool, about("let the proxy resolve names, whose addresses are then not checked (docs/security.md)")
    ] = False
    max_bytes: Annotated[int, about("maximum size of a body, in bytes", ge=1)] = 100_000_000
    timeout: Annotated[float, about("seconds for a whole download", gt=0)] = 300.0
    connect_timeout: Annotated[float, about("seconds to connect", gt=0)] = 10.0
    first_byte_timeout: Annotated[float, about("seconds until the first byte of a response", gt=0)] = 30.0
    query_timeout: Annotated[
        float, about("seconds until the first byte of an answer to a SPARQL query", gt=0)
    ] = 120.0
    min_rate: Annotated[int, about("minimum bytes per second over min_rate_window", ge=0)] = 1024
    min_rate_window: Annotated[float, about("seconds over which the rate is measured", gt=0)] = 30.0
    max_redirects: Annotated[int, about("maximum redirects from one URL", ge=0)] = 10
    max_header_bytes: Annotated[int, about("maximum bytes of response headers", ge=1024)] = 64 * 1024
    max_ratio: Annotated[int, about("maximum decoded bytes for each byte received", ge=1)] = 100


class OpenSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on unpacking."""

    max_unpacked: Annotated[
        int, about("maximum bytes unpacked from one body; 0: half of the free disk", ge=0)
    ] = 0
    max_members: Annotated[int, about("maximum members of an archive", ge=1)] = 100_000
    max_ratio: Annotated[int, about("maximum bytes unpacked from each packed byte, beyond 16 MiB", ge=1)] = (
        100
    )
    max_layers: Annotated[int, about("maximum nesting of codecs and archives", ge=1)] = 4
    max_archives: Annotated[int, about("maximum nesting of archives", ge=1)] = 2


class AnalyseSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on reading documents, and what is followed."""

    follow: Annotated[
        tuple[str, ...], about("positions whose IRIs are followed as links; datatypes can be added")
    ] = ("subjects", "predicates", "objects")
    rules: Annotated[tuple[str, ...], about("files or folders of scraping rules")] = ()
    max_errors: Annotated[int, about("maximum problems reported for one document", ge=1)] = 100
    growth: Annotated[
        int, about("maximum bytes of statements from each byte of a body, beyond 16 MiB", ge=1)
    ] = 250
    xml_depth: Annotated[int, about("maximum nesting of XML", ge=1)] = 1000
    turtle_depth: Annotated[int, about("maximum nesting of Turtle, TriG and N3", ge=1)] = 1000
    json_depth: Annotated[int, about("maximum nesting of JSON", ge=1)] = 500
    entity_bytes: Annotated[int, about("maximum bytes that the entities of a document expand to", ge=0)] = (
        65536
    )
    jsonld_bytes: Annotated[int, about("larger JSON-LD is read as streaming JSON-LD", ge=1)] = 16 << 20
    html_bytes: Annotated[int, about("maximum bytes of a page", ge=1)] = 16 << 20
    hdt_bytes: Annotated[int, about("maximum bytes of an HDT file", ge=1)] = 256 << 20
    hdt_dictionary: Annotated[int, about("maximum bytes of all terms of an HDT file", ge=1)] = 512 << 20
    jelly_frame: Annotated[int, about("maximum bytes of a frame of a Jelly stream", ge=1)] = 8 << 20
    rdfjson_subject: Annotated[int, about("maximum characters about one subject in RDF/JSON", ge=1)] = (
        16 << 20
    )
    sitemap_urls: Annotated[int, about("maximum URLs in one sitemap", ge=1)] = 50_000
    sitemap_bytes: Annotated[int, about("maximum bytes of one sitemap", ge=1)] = 50 << 20
    sitemap_loc: Annotated[int, about("maximum length of a URL in a sitemap", ge=1)] = 2048
    html_nesting: Annotated[int, about("maximum of the tags of a page times their depth", ge=1)] = 20_000_000


class SandboxSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The child process that analyses large or dangerous documents, and its limits."""

    use: Annotated[
        Literal["never", "auto", "always"],
        about("auto: large, packed or suspicious documents; always: small ones too"),
    ] = "auto"
    memory: Annotated[int, about("maximum bytes of address space", ge=256 << 20)] = 1536 << 20
    processes: Annotated[int, about("sandboxes of each worker, started when needed", ge=1)] = 2
    cpu: Annotated[int, about("seconds of CPU time without a result", ge=1)] = 20
    cpu_per_mb: Annotated[
        float, about("seconds of CPU time for each megabyte of a body, beyond sandbox.cpu", ge=0)
    ] = 10.0
    cpu_whole: Annotated[int, about("total seconds of CPU time for one document", ge=1)] = 1800
    documents: Annotated[int, about("documents before the process is replaced", ge=1)] = 1000


class SinksSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Form of the results that are written."""

    graphs: Annotated[Literal["own", "all"], about("which graph names inside documents are kept")] = "own"
    gzip: Annotated[bool, about("compress each file of turtle-files with gzip")] = False
    segments: Annotated[str, about("what writes the segments of quads: nquads, or a sink of a plug-in")] = (
        "nquads"
    )


class ArchiveSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Storage of bytes, and rules for what becomes a version."""

    store: Annotated[
        str | None,
        about(
            "a folder or s3://BUCKET/PREFIX for bodies, quads and WARC files;"
            " default: the data directory; fixed by the first version"
        ),
    ] = None
    repack: Annotated[
        bool,
        about("`tamias serve` repacks the versions of resources that have not changed for repack_after"),
    ] = True
    repack_after: Annotated[
        float, about("seconds without a new version before the versions of a resource are repacked", ge=0)
    ] = 3600.0
    repack_seconds: Annotated[
        float,
        about("maximum CPU time that `tamias serve` spends on repacking in ten minutes, in seconds", gt=0),
    ] = 60.0
    captures_months: Annotated[
        int,
        about(
            "complete months of captures that stay in the database; a repack moves older ones to Parquet"
            " files in the store, where they are still read; 0: all stay",
            ge=0,
            le=600,
        ),
    ] = 0
    patience: Annotated[
        float,
        about(
            "seconds that a worker waits for a store that cannot be reached, and leases nothing;"
            " then it gives its hosts back, and the crawl waits for up to crawl.max_wait; at most 1800",
            ge=0,
            le=1800,  # a pack that waits for an hour is taken for that of a dead worker
        ),
    ] = 60.0
    keep: Annotated[
        str,
        about(
            "which versions are kept: all, last:N, days:D, thin (all of this month, one a month before);"
            " with commas between, what one of them keeps; the current version always is"
        ),
    ] = "all"
    keep_for: Annotated[
        tuple[str, ...],
        about("other rules for hosts and portals: HOST=RULE or PORTAL-URL=RULE, such as example.org=last:5"),
    ] = ()
    closed: Annotated[
        tuple[str, ...],
        about(
            "what is closed to the public: HOST=RULE or URL=RULE, where a URL may end in *; RULE is block or"
            " until:DATE, and with ,after:TIME or ,before:TIME only captures of these times"
        ),
    ] = ()
    suspicious_days: Annotated[
        float, about("days after which a response that stays suspicious becomes a version", ge=0)
    ] = 7.0


class ScheduleSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Times at which watched resources, and the URLs of a continuous crawl, are visited again."""

    rule: Annotated[
        str,
        about(
            "value, seed (the rule of the Open Dataset Archive) or fixed:SECONDS",
            pattern=r"^(value|seed|fixed:[0-9]{1,9})$",
        ),
    ] = "value"
    knob: Annotated[float, about("0: keep the newest version fresh; 1: catch every version", ge=0, le=1)] = (
        0.3
    )
    budget: Annotated[
        float | None, about("visits a day to all resources; default: no limit, at least two for each change")
    ] = None
    visits_each: Annotated[float, about("visits a day to a resource, on average", gt=0)] = 2.0
    min_interval: Annotated[float, about("minimum seconds between two visits to a resource", gt=0)] = 3600.0
    max_interval: Annotated[float, about("maximum seconds between two visits to a resource", gt=0)] = (
        180 * 86_400.0
    )
    host_share: Annotated[float, about("maximum share of a budget for one host", gt=0, le=1)] = 0.2
    host_visits: Annotated[float, about("maximum visits a day to a host, without budget", gt=0)] = 10_000.0
    retry_wait: Annotated[float, about("seconds before a retry after a failure; doubled each time", gt=0)] = (
        3600.0
    )
    harvests: Annotated[
        float, about("seconds between two harvests of a watched portal or endpoint", gt=0)
    ] = 86_400.0
    gone_wait: Annotated[
        float, about("seconds before revisiting a resource that is gone; doubled each time", gt=0)
    ] = 86_400.0
    gone_visits: Annotated[
        int, about("leave a URL of a continuous crawl alone after so many visits that found it gone", ge=1)
    ] = 5
    failed_visits: Annotated[
        int, about("leave a URL of a continuous crawl alone after so many visits that failed", ge=1)
    ] = 12
    importance: Annotated[
        tuple[str, ...],
        about(
            "what is worth more visits: 'tag=NAME 2' and 'score 2' for URLs of continuous crawls,"
            " 'portal=URL 2' and 'quality=METRIC 2' for watched resources"
        ),
    ] = ()


class ServeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The public address of the archive, and limits on queries."""

    address: Annotated[str, about("prefix of the IRIs in the catalogue")] = "http://127.0.0.1:8080"
    sparql: Annotated[
        str | None, about("URL of a SPARQL server to use instead of the one in the data directory")
    ] = None
    sparql_update: Annotated[
        str | None,
        about("where that server accepts graphs or updates; if not set, you must fill it yourself"),
    ] = None
    public: Annotated[
        bool, about("everybody who can connect may read; if false, only with the secret or a token")
    ] = True
    sparql_seconds: Annotated[float, about("maximum time for a query, in seconds", ge=1)] = 60.0
    sparql_bytes: Annotated[int, about("maximum size of a query result, in bytes", ge=1)] = 256 << 20
    sparql_guard: Annotated[bool, about("run SPARQL queries without network; needs user namespaces")] = True


class StrategySettings(msgspec.Struct, frozen=True, kw_only=True):
    """The order of visits, by your own SQL."""

    links: Annotated[
        bool, about("store links with their anchor text and context, and score URLs by them")
    ] = False
    seconds: Annotated[float, about("maximum time to score 1000 URLs, in seconds", gt=0, le=60)] = 2.0
    head_start: Annotated[
        float,
        about("head start, in seconds, of a URL with score 1 over one with score 0 on the same host", ge=0),
    ] = 86_400.0


class FeatureSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the settings of a feature."""

    def refused(self) -> "Iterable[tuple[str, str]]":
        """Return settings that no type refuses, with what they must be."""
        return ()


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings as a whole; a table in the file for each folder of the code."""

    crawl: CrawlSettings = CrawlSettings()
    seeds: SeedsSettings = SeedsSettings()
    filters: FiltersSettings = FiltersSettings()
    frontier: FrontierSettings = FrontierSettings()
    tags: TagsSettings = TagsSettings()
    permit: PermitSettings = PermitSettings()
    fetch: FetchSettings = FetchSettings()
    open: OpenSettings = OpenSettings()
    analyse: AnalyseSettings = AnalyseSettings()
    sandbox: SandboxSettings = SandboxSettings()
    sinks: SinksSettings = SinksSettings()
    archive: ArchiveSettings = ArchiveSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    serve: ServeSettings = ServeSettings()
    strategy: StrategySettings = StrategySettings()
    features: dict[str, dict[str, Any]] = {}
    """Tables of features, each with the values that were set."""

    def of_feature(self, name: str, kind: type[T]) -> T:
        """Return the settings of a feature."""
        return msgspec.convert(self.features.get(name, {}), kind)

    def value(self, setting: "Setting") -> Any:
        """Return the value of any setting."""
        kind = feature_tables().get(setting.table)
        return getattr(
            self.of_feature(setting.table, kind) if kind else getattr(self, setting.table), setting.name
        )


class Setting(msgspec.Struct, frozen=True):
    """Line of the table of settings."""

    table: str
    name: str
    default: Any
    help: str

    @property
    def key(self) -> str:
        """The name as errors and `config show` write it."""
        return f"{self.table}.{self.name}"

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return f"TAMIAS_{self.table}__{self.name}".upper()


class Resolved(msgspec.Struct, frozen=True):
    """The settings in force, and for each the place its value came from."""

    settings: Settings
    origins: dict[str, str]


@cache
def all_settings() -> tuple[Setting, ...]:
    """The table of settings, in order."""
    return tuple(
        Setting(table, field.name, field.default, _help(field.type))
        for table, kind in _tables().items()
        for field in msgspec.structs.fields(kind)
    )


@cache
def feature_tables() -> dict[str, type[FeatureSettings]]:
    """Return the structs of the settings of features, by the names of their tables."""
    from tamias.plugins import features, load_target

    return {each.name: load_target(each.settings) for each in features() if each.settings}


@cache
def _all_tables() -> type[msgspec.Struct]:
    rows = [(name, kind, msgspec.field(default_factory=kind)) for name, kind in _tables().items()]
    return msgspec.defstruct("AllTables", rows)


@cache
def _tables() -> dict[str, type[msgspec.Struct]]:
    core = {each.name: each.type for each in msgspec.structs.fields(Settings) if each.name != "features"}
    return {**core, **feature_tables()}


def resolve(
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> Resolved:
    """Put the layers together. `flags` maps keys such as `fetch.delay` to values; None means not given."""
    known = {setting.key: setting for setting in all_settings()}
    values: dict[str, Any] = {}
    origins = dict.fromkeys(known, "default")
    from_file = _from_file(file, known) if file else {}
    layers = [
        (f"file {file}", from_file),
        ("environment", _from_environment(os.environ if environment is None else environment, known)),
        ("flag", {key: value for key, value in (flags or {}).items() if value is not None}),
    ]
    for origin, layer in layers:
        values |= layer
        origins |= dict.fromkeys(layer, origin)
    own = str(file.absolute()) if file else None
    listed = from_file.get("fetch.credentials")
    if isinstance(listed, list) and own in listed and own not in values["fetch.credentials"]:
        # Its [[credentials]] are no value of a setting that another one replaces.
        values["fetch.credentials"] = [*values["fetch.credentials"], own]
    preset = PRESETS.get(values.get("crawl.preset", "none"), {})
    origins |= {key: f"preset {values['crawl.preset']}" for key in preset if key not in values}
    values = {**preset, **values}
    return Resolved(_converted(values, origins), origins)


_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "text",
    "array": "a list",
    "object": "a table",
}
_LONGEST_SHOWN = 60
_CONTACT = re.compile(r"[A-Za-z][\w+.-]*:\S+|[^\s@]+@[^\s@]+")


def _help(annotation: Any) -> str:
    return next((part.description for part in get_args(annotation)[1:] if isinstance(part, Meta)), "") or ""


def _from_file(file: Path, known: dict[str, Setting]) -> dict[str, Any]:
    import tomllib

    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read the configuration {file}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"the configuration {file} is not TOML: {error}") from error
    values: dict[str, Any] = {}
    own_credentials = tables.pop("credentials", None)
    for table, content in tables.items():
        if not isinstance(content, dict):
            raise ConfigError(f"{file}: '{table}' must be in a table such as [fetch]")
        for name, value in content.items():
            key = f"{table}.{name}"
            if key not in known:
                raise ConfigError(f"{file}: there is no setting '{key}'{_meant(key, known)}")
            values[key] = value
    if own_credentials is not None:
        # Only the place: who sends requests reads them there.
        values["fetch.credentials"] = [*values.get("fetch.credentials", ()), str(file.absolute())]
    return values


def _from_environment(environment: Mapping[str, str], known: dict[str, Setting]) -> dict[str, Any]:
    by_variable = {setting.variable: setting for setting in known.values()}
    values: dict[str, Any] = {}
    for variable, text in environment.items():
        if not (variable.startswith("TAMIAS_") and "__" in variable) or variable.startswith(
            CREDENTIAL_PREFIX
        ):
            continue
        setting = by_variable.get(variable)
        if setting is None:
            raise ConfigError(f"{variable}: there is no such setting{_meant(variable, by_variable)}")
        listed = isinstance(setting.default, tuple)
        values[setting.key] = [part.strip() for part in text.split(",") if part.strip()] if listed else text
    return values


def _meant(wrong: str, known: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(wrong, known, n=1)
    return f"; did you mean '{close[0]}'?" if close else "; 'tamias config show' lists all"


def _converted(values: dict[str, Any], origins: dict[str, str]) -> Settings:
    tables: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        table, name = key.split(".")
        tables.setdefault(table, {})[name] = None if (key, value) == ("crawl.depth", -1) else value
    try:
        whole = msgspec.convert(tables, _all_tables(), strict=False)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$.")
        key = place.rstrip("`").split("[")[0]
        wanted = _in_words(what, key)
        problem = f"{wanted}, not {_shown(values[key])}" if key in values else wanted
        raise ConfigError(f"{key} ({origins.get(key, 'unknown')}): {problem}") from error
    found = msgspec.structs.asdict(whole)
    added = {name: found.pop(name) for name in feature_tables()}
    refused = [*_refused(settings := Settings(**found))]
    refused += [(f"{name}.{key}", wanted) for name, each in added.items() for key, wanted in each.refused()]
    for key, wanted in refused:
        raise ConfigError(f"{key} ({origins[key]}): {wanted}")
    return msgspec.structs.replace(settings, features=msgspec.to_builtins(added))


def _in_words(problem: str, key: str) -> str:
    """Return what a value has to be, for somebody who writes TOML, from what msgspec says of it.

    >>> _in_words("Expected `int | null`, got `float`", "crawl.depth")
    'must be a whole number'
    >>> _in_words("Expected `float` >= 0.0", "fetch.delay")
    'must be a number >= 0.0'
    >>> _in_words("Invalid enum value 'hosts'", "filters.scope")
    'must be one of any, host, domain, prefix'
    """
    if problem.startswith("Invalid enum value"):
        table, name = key.split(".")
        choice = next(each.type for each in msgspec.structs.fields(_tables()[table]) if each.name == name)
        return f"must be one of {', '.join(get_args(get_args(choice)[0]))}"
    wanted = problem.partition(", got ")[0].replace("Expected ", "must be ", 1).replace(" | null`", "`")
    return re.sub(r"`(\w+)`", lambda found: _TYPES.get(found[1], found[0]), wanted)


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _refused(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield settings that no type refuses, with what they must be."""
    contact = settings.fetch.contact
    if settings.frontier.buckets & (settings.frontier.buckets - 1):
        yield "frontier.buckets", "must be a power of two"
    if _CONTACT.fullmatch(contact) is None:
        yield "fetch.contact", f"must be a URL or an e-mail address, not {_shown(contact)}"
