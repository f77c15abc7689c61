"""H12 to H14 and H27: servers that misbehave on the wire, want to be remembered, or are not who they say."""

from benchmarks.webs.server import head
from tamias.model.capture import Outcome
from tests.hostile.web.attack import Attack, AttackEvidence, asked_at_most, every, failed, refused
from tests.hostile.web.wire import drip, endless, raw, redirect, reset, silent, status, whole

_TURTLE = (("Content-Type", "text/turtle"),)
_S, _W = "http://slow.test", "http://wire.test"
_MALFORMED = {
    "/many": b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: y\r\n" % number for number in range(20_000)) + b"\r\n",
    "/wide": b"HTTP/1.1 200 OK\r\nX-Wide: " + b"y" * 1_000_000 + b"\r\n\r\n",
    "/interim": b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n" * 20_000 + b"HTTP/1.1 200 OK\r\n\r\n",
    "/chunks": head(200, (*_TURTLE, ("Transfer-Encoding", "chunked")))
    + b"FFFFFFFFFFFFFFFFF\r\nx\r\n0\r\n\r\n",
    "/short": head(200, (*_TURTLE, ("Content-Length", "1000"))) + b"<> <#p> 1 .",
    "/negative": head(200, (*_TURTLE, ("Content-Length", "-1"))) + b"<> <#p> 1 .",
    "/huge": head(200, (*_TURTLE, ("Content-Length", "999999999999999"))) + b"<> <#p> 1 .",
    "/no-http": b"220 smtp.test ESMTP\r\n",
    "/zeros": bytes(100_000),
    "/http09": b"<> <#p> 1 .",
    "/nothing": b"",
}
SMUGGLED = (
    head(200, (*_TURTLE, ("Content-Length", "11"), ("Transfer-Encoding", "chunked")))
    + b"b\r\n<> <#p> 1 .\r\n0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n<> <#smuggled> true ."
)
PRIVATE_HEADERS = frozenset({"cookie", "referer", "authorization", "proxy-authorization", "from"})


def nothing_sent(evidence: AttackEvidence) -> str | None:
    """No request, to whomever, carried a cookie, a referrer or a password."""
    sent = {
        f"{name} to {each.host}" for each in evidence.log for name in PRIVATE_HEADERS & each.headers.keys()
    }
    return f"sent: {sorted(sent)[:5]}" if sent else None


def malformed(evidence: AttackEvidence) -> str | None:
    """None of them is a success."""
    for path in _MALFORMED:
        capture = evidence.last(_W + path)
        if capture is None or capture.outcome is not Outcome.FAILED:
            return f"{_W}{path} is {capture.outcome.word if capture else 'not visited'}"
    return None


def not_smuggled(evidence: AttackEvidence) -> str | None:
    """What stands behind an answer is no answer."""
    return "a smuggled answer is in the quads" if "#smuggled" in evidence.quads else None


ATTACKS = (
    Attack(
        number="H12",
        name="slow",
        what="no response, a byte at a time, endless streams, connections that break",
        limit="fetch.first_byte_timeout, fetch.min_rate, fetch.timeout, fetch.max_bytes; no dust",
        seeds=("/silent", "/headers", "/body", "/endless", "/chunked", "/reset"),
        pages={
            "/silent": silent,
            "/headers": drip(b"HTTP/1.1 200 OK\r\n", b"X-More: y\r\n", 0.2),
            "/body": drip(head(200, _TURTLE), b"#", 0.2),
            "/endless": endless(head(200, _TURTLE), b"# and so on\n"),
            "/chunked": endless(head(200, (*_TURTLE, ("Transfer-Encoding", "chunked"))), b"4\r\n# x\n\r\n"),
            "/reset": reset,
        },
        holds=every(
            failed(_S + "/silent", "first_byte_timeout"),
            failed(_S + "/headers", "min_rate", "total_timeout"),
            failed(_S + "/body", "min_rate"),
            failed(_S + "/endless", "max_bytes", "total_timeout"),
            failed(_S + "/chunked", "pieces of less than"),
            failed(_S + "/reset"),
        ),
    ),
    Attack(
        number="H12",
        name="robots-endless",
        what="an endless robots.txt",
        limit="fetch.max_bytes; an unreadable robots.txt closes the host",
        seeds=("/page",),
        pages={
            "/robots.txt": endless(head(200, (("Content-Type", "text/plain"),)), b"Disallow: /no\n"),
            "/page": whole("<> <#p> 1 ."),
        },
        holds=every(
            refused("http://robots-endless.test/page", "robots.txt"),
            lambda evidence: "asked" if evidence.of_host("robots-endless.test") else None,
        ),
    ),
    Attack(
        number="H13",
        name="wire",
        what="20,000 headers, a header of a megabyte, wrong lengths and chunks, two lengths at once",
        limit="fetch.max_header_bytes; a strict parser; a truncated body is never a success",
        seeds=(*_MALFORMED, "/smuggled"),
        pages={**{path: raw(data) for path, data in _MALFORMED.items()}, "/smuggled": raw(SMUGGLED)},
        holds=every(malformed, not_smuggled, failed(_W + "/many", "max_header_bytes", "headers")),
    ),
    Attack(
        number="H14",
        name="memory",
        what="sets cookies, asks for passwords, redirects, and checks what is sent back",
        limit="no cookie jar, no netrc, no referrer, no credentials",
        seeds=("/", "/login", "/away"),
        pages={
            "/": whole(
                "<a href='/next'>next</a>", "text/html", ("Set-Cookie", "id=7; Path=/; Max-Age=99999")
            ),
            "/next": whole("<> <#p> 1 .", "text/turtle", ("Set-Cookie", "id=8; Domain=.test")),
            "/login": status(401, ("WWW-Authenticate", 'Basic realm="all"'), ("Set-Cookie", "id=9")),
            "/away": redirect("/next"),
        },
        holds=every(nothing_sent, asked_at_most("memory.test", 8)),
    ),
    Attack(
        number="H27",
        name="tls",
        what="certificates that are self-signed, expired, or somebody else's",
        limit="TLS is verified; there is no silent fallback",
        seeds=("https://tls.test/", "https://tls-expired.test/", "https://tls-other.test/"),
        pages={"*": whole("<> <#secure> false .")},
        holds=every(
            failed("https://tls.test/", "self-signed", "self signed"),
            failed("https://tls-expired.test/", "expired"),
            failed("https://tls-other.test/", "no alternative certificate subject name matches"),
        ),
    ),
)
