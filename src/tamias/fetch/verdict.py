"""The verdict on a response or an error: outcome, reason in plain words, worth another try.

An `Attempt` is what has been seen so far of a capture in the making.
"""

import asyncio
import errno
import os
from collections.abc import Awaitable
from http import HTTPStatus
from typing import NamedTuple

import msgspec
import pycurl

from tamias.model.capture import Body, Capture, Hop, Outcome, Request, Unreached
from tamias.model.url import host

REDIRECTS = frozenset({301, 302, 303, 307, 308})
TURNS_TO_GET = frozenset({301, 302, 303})
"""Redirects after which a POST is a GET without a body, as browsers have it."""
UNACCEPTABLE = 406
PAUSES = frozenset({429, 503})
"""Statuses whose Retry-After is listened to."""

_GONE = frozenset({404, 410})
_RETRIED = frozenset({408, 425, 429})
_NEVER_BETTER = frozenset({501, 505})
"""What a server cannot do it will not be able to do in a minute."""
_NAMES = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}

_WEIRD_SERVER_REPLY = 8  # curl's codes that pycurl has no name for
_TOO_LARGE = 100
_TROUBLES = {
    pycurl.E_COULDNT_RESOLVE_HOST: ("name does not resolve: {host}", True),
    pycurl.E_OPERATION_TIMEDOUT: (
        "no connection to {peer} within {connect_timeout:g} s (connect_timeout)",
        True,
    ),
    pycurl.E_SSL_CONNECT_ERROR: ("TLS with {peer} failed: {message}", True),
    pycurl.E_PEER_FAILED_VERIFICATION: ("TLS certificate of {host} refused: {message}", False),
    pycurl.E_GOT_NOTHING: ("{peer} closed the connection without an answer", True),
    pycurl.E_PARTIAL_FILE: ("body cut short: {message}", True),
    pycurl.E_BAD_CONTENT_ENCODING: ("content coding cannot be undone: {message}", False),
    pycurl.E_UNSUPPORTED_PROTOCOL: ("the answer is not {protocol}: {message}", False),
    _WEIRD_SERVER_REPLY: ("the answer is not {protocol}: {message}", False),
    _TOO_LARGE: ("the answer's headers are too large: {message}", False),
    pycurl.E_URL_MALFORMAT: ("address cannot be fetched: {message}", False),
}
_NO_ANSWER = frozenset({pycurl.E_UNSUPPORTED_PROTOCOL, _WEIRD_SERVER_REPLY})
"""On a connection that was used before, this may be the end of an answer that was longer than declared."""
_UNREACHED = {
    pycurl.E_COULDNT_RESOLVE_HOST: Unreached.UNKNOWN,
    pycurl.E_OPERATION_TIMEDOUT: Unreached.UNKNOWN,
    pycurl.E_SSL_CONNECT_ERROR: Unreached.DEFINITE,
    pycurl.E_PEER_FAILED_VERIFICATION: Unreached.DEFINITE,
}
_OTHER_TROUBLE = ("connection to {peer} failed: {message}", True)


class Verdict(NamedTuple):
    """The end of an attempt."""

    outcome: Outcome
    reason: str
    retry: bool = False
    cut: int = 0
    """What kept us from asking: bits of `tamias.model.cut`."""
    unreached: Unreached | None = None


class TransferTrouble(NamedTuple):
    """The details of a transfer that curl gave up."""

    url: str
    code: int
    message: str
    errno: int
    peer: str
    """`address:port` last tried, or the host's name when it did not come to that."""
    reused: bool = False
    """Whether the connection had brought another answer before."""


def failed(reason: str, *, retry: bool = False, unreached: Unreached | None = None) -> Verdict:
    """The attempt failed for this reason."""
    return Verdict(Outcome.FAILED, reason, retry, unreached=unreached)


def refused(reason: str, cut: int = 0) -> Verdict:
    """A rule of ours forbids the attempt."""
    return Verdict(Outcome.REFUSED, reason, cut=cut)


def of_status(status: int, *, conditional: bool) -> Verdict:
    """The verdict on a complete answer that is no redirect to follow."""
    name = _NAMES.get(status, str(status))
    if status == HTTPStatus.PARTIAL_CONTENT:
        return failed(f"{name}, though no range was requested")
    if 200 <= status < 300:
        return Verdict(Outcome.OK, name)
    if status == HTTPStatus.NOT_MODIFIED:
        return (
            Verdict(Outcome.UNCHANGED, name)
            if conditional
            else failed(f"{name}, though nothing was compared")
        )
    if status in _GONE:
        return Verdict(Outcome.GONE, name)
    return failed(name, retry=status in _RETRIED or (500 <= status < 600 and status not in _NEVER_BETTER))


def of_trouble(trouble: TransferTrouble, connect_timeout: float) -> Verdict:
    """The verdict on a transfer that ended with an error of curl's."""
    if trouble.code == pycurl.E_COULDNT_CONNECT:
        refusal = trouble.errno == errno.ECONNREFUSED
        unreached = Unreached.DEFINITE if refusal else Unreached.UNKNOWN
        return failed(_unconnected(trouble), retry=True, unreached=unreached)
    words, retry = _TROUBLES.get(trouble.code, _OTHER_TROUBLE)
    reason = words.format(
        host=host(trouble.url),
        protocol="FTP" if trouble.url.startswith("ftp") else "HTTP",
        peer=trouble.peer,
        message=trouble.message or f"curl error {trouble.code}",
        connect_timeout=connect_timeout,
    )
    retry = retry or (trouble.reused and trouble.code in _NO_ANSWER)
    return failed(reason, retry=retry, unreached=_UNREACHED.get(trouble.code))


def _unconnected(trouble: TransferTrouble) -> str:
    if trouble.errno == errno.ECONNREFUSED:
        return f"connection refused by {trouble.peer}"
    why = os.strerror(trouble.errno) if trouble.errno else trouble.message
    return f"no connection to {trouble.peer}: {why}"


class Attempt(msgspec.Struct, kw_only=True):
    """An attempt on one address."""

    request: Request
    started_at: int
    seconds_left: float
    hops: list[Hop] = msgspec.field(default_factory=list)
    wire_bytes: int = 0

    async def timed(self, asking: Awaitable[tuple[int, str]]) -> tuple[int, str]:
        """The code and message that it ends with; its time is taken from what is left."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        ending = await asking
        self.seconds_left -= loop.time() - begun
        return ending

    def leads_to(self, target: str) -> None:
        """Notes where the last answer sends us."""
        self.hops[-1] = msgspec.structs.replace(self.hops[-1], location=target)

    def captured(
        self, verdict: Verdict, body: Body | None, ended_at: int, *, url: str, pause: int | None = None
    ) -> Capture:
        """The capture; `pause` is how long the server asked us to stay away, in milliseconds."""
        return Capture(
            url=url,
            started_at=self.started_at,
            ended_at=ended_at,
            outcome=verdict.outcome,
            reason=verdict.reason,
            hops=tuple(self.hops),
            body=body,
            retry=verdict.retry,
            retry_after_ms=pause,
            wire_bytes=self.wire_bytes,
            cut=verdict.cut,
            unreached=None if self.hops else verdict.unreached,
        )
