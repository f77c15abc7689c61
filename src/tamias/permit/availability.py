"""The meaning of the outcome of fetching robots.txt (RFC 9309, sections 2.3 and 2.4), and stored rules."""

from enum import Enum

import msgspec

from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.permit.delay import host_delay_ms
from tamias.permit.robots import TOKEN, RobotsVerdict, Rules, parse

MOST_REDIRECTS = 5
"""Redirects to follow for robots.txt, also to other hosts; the rules hold for the host first asked."""

LONGEST_CACHED = 24 * 3600
SHORTEST_CACHED = 5 * 60
UNREACHABLE_PAUSE = 10 * 60
"""Seconds before an unreachable robots.txt is asked for again; who asks repeatedly lets it grow."""


class HostAccess(Enum):
    """The part of a host that the outcome opens."""

    RULES = "rules"
    ALL = "all"
    NONE = "none"


class RobotsAvailability(msgspec.Struct, frozen=True):
    """The consequences of an outcome, and the reason in words."""

    access: HostAccess
    reason: str


def robots_address(url: str) -> str:
    """The robots.txt that speaks for an absolute URL: one for each scheme, host and port.

    >>> robots_address("https://me:secret@example.org:8443/a?b")
    'https://example.org:8443/robots.txt'
    """
    scheme, _, rest = url.partition("://")
    authority = rest.partition("/")[0].partition("?")[0].partition("#")[0]
    return f"{scheme}://{authority.rpartition('@')[2]}/robots.txt"


def meaning(status: int | None, why: str = "no answer") -> RobotsAvailability:
    """The meaning of the last answer's status; None for no answer (name, connection, TLS, time-out).

    `why` says what came instead. A redirect is the last answer only if there were more than
    `MOST_REDIRECTS`. We ask for robots.txt without conditions, so a 304 answers nothing. Unreachable stays
    closed, however long it lasts.
    """
    if status is None:
        return RobotsAvailability(
            HostAccess.NONE, f"robots.txt is unreachable: {why}, so nothing may be fetched"
        )
    if 200 <= status < 300:
        return RobotsAvailability(HostAccess.RULES, f"robots.txt was read (status {status})")
    if status == 429:
        return RobotsAvailability(
            HostAccess.NONE, "robots.txt is unreachable: too many requests (429), so we wait"
        )
    if 400 <= status < 500:
        return RobotsAvailability(
            HostAccess.ALL, f"there is no robots.txt (status {status}), so everything may be fetched"
        )
    if 300 <= status < 400 and status != 304:
        return RobotsAvailability(
            HostAccess.ALL, f"robots.txt redirects more than {MOST_REDIRECTS} times: as if there were none"
        )
    return RobotsAvailability(
        HostAccess.NONE, f"robots.txt is unreachable: status {status}, so nothing may be fetched"
    )


def rules_of(status: int | None, body: bytes, why: str = "no answer") -> Rules:
    """The rules that an outcome establishes, whether or not there is a file to parse; `why` there is none."""
    outcome = meaning(status, why)
    if outcome.access is HostAccess.RULES:
        return parse(body, TOKEN)
    return Rules(blanket=RobotsVerdict(outcome.access is HostAccess.ALL, outcome.reason))


def expires_after(status: int | None, cache_control: str | None = None) -> int:
    """Seconds until robots.txt is to be fetched again: at most a day, less if Cache-Control says so."""
    if meaning(status).access is HostAccess.NONE:
        return UNREACHABLE_PAUSE
    return max(SHORTEST_CACHED, min([LONGEST_CACHED, *_ages(cache_control or "")]))


def _ages(cache_control: str) -> list[int]:
    ages = []
    for directive in cache_control.lower().split(","):
        name, _, value = directive.partition("=")
        seconds = value.strip('" ')
        if name.strip() in ("no-cache", "no-store"):
            ages.append(0)
        elif name.strip() == "max-age" and seconds.isascii() and seconds.isdigit():
            # Nine digits are far over a day already.
            ages.append(int("0" + seconds.lstrip("0")[:9]))
    return ages


_SQL = statements("tamias.permit", "robots.sql")


class KnownRobots(msgspec.Struct, frozen=True):
    """The rules of an authority, and until when (milliseconds) they hold."""

    rules: Rules
    expires_at: int


class RobotsStore:
    """Reads and writes the rules of authorities. For one thread, as its session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def read(self, bucket: int, qid: int, authority: str) -> KnownRobots | None:
        """The rules, unless unknown or expired."""
        parameters = {"bucket": bucket, "qid": qid, "authority": authority, "now": self._session.now()}
        row = self._session.fetch_one(_SQL["read_robots"], parameters, bucket)
        return None if row is None else KnownRobots(msgspec.msgpack.decode(row[0], type=Rules), row[1])

    def write(
        self, bucket: int, qid: int, authority: str, rules: Rules, status: int | None, seconds: int
    ) -> KnownRobots:
        """Keep rules for some seconds from now."""
        now = self._session.now()
        parameters = {
            "bucket": bucket,
            "qid": qid,
            "authority": authority,
            "fetched_at": now,
            "expires_at": now + seconds * 1000,
            "status": status,
            "rules": msgspec.msgpack.encode(rules),
        }
        wanted = {"bucket": bucket, "qid": qid, "delay_ms": host_delay_ms(0, rules.crawl_delay, True)}

        def work(cursor: Cursor) -> None:
            cursor.execute(_SQL["write_robots"].text, parameters)
            cursor.execute(_SQL["slow_host"].text, wanted)

        if wanted["delay_ms"]:
            self._session.transact(work, bucket)
        else:
            self._session.execute(_SQL["write_robots"], parameters, bucket)
        return KnownRobots(rules, now + seconds * 1000)
