"""H1 to H4: pages, names and redirects that lead into the network behind the crawler."""

from tamias.model.capture import Outcome
from tests.hostile.web.attack import (
    Attack,
    AttackEvidence,
    Check,
    ended,
    every,
    failed,
    no_canary,
    refused,
    unvisited,
)
from tests.hostile.web.namespace import INSIDE
from tests.hostile.web.wire import Answer, redirect, whole

PRIVATE = (
    "http://127.0.0.1/",
    f"http://{INSIDE}/",
    "http://169.254.169.254/latest/meta-data/",
    "http://192.168.66.1/",
    "http://[::1]/",
    "http://[fd00:ec2::254]/latest/meta-data/",
    "http://inside.test/",
)
DISGUISED = {
    "http://0x7f.1/": "http://127.0.0.1/",
    "http://2130706433/secret": "http://127.0.0.1/secret",
    "http://0251.0376.0251.0376/": "http://169.254.169.254/",
    "http://127.1:80/admin": "http://127.0.0.1/admin",
}
CARRIERS = (
    f"http://[::ffff:{INSIDE}]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[::127.0.0.1]/",
    "http://[fec0::1]/",
    "http://[ff02::1]/",
    "http://224.0.0.1/",
    "http://0.0.0.0/",
    "http://255.255.255.255/",
)


def links(*addresses: str) -> Answer:
    """A page of links."""
    return whole("".join(f"<a href='{address}'>in</a>\n" for address in addresses), "text/html")


def refused_all(*urls: str) -> Check:
    """Each is on record as refused for its address; a mapped one is written in another way."""

    def check(evidence: AttackEvidence) -> str | None:
        wanted = {url.partition("/")[2] for url in urls}
        tried = {url for url in evidence.captures if url.partition("/")[2] in wanted}
        if not tried:
            return "none of the links was tried"
        return next((wrong for url in sorted(tried) if (wrong := refused(url, "address")(evidence))), None)

    return every(no_canary, check)


def rebound(evidence: AttackEvidence) -> str | None:
    """What came, came from the public address; the private one was not asked."""
    captures = [each for url, found in evidence.captures.items() if "//rebind" in url for each in found]
    wrong = [hop.address for each in captures for hop in each.hops if not hop.address.startswith("45.66.")]
    if wrong:
        return f"answers from {wrong}"
    if not any(each.outcome is Outcome.OK for each in captures):
        return "the public address was not asked either"
    return no_canary(evidence)


def _hops(count: int) -> dict[str, Answer]:
    return {f"/long/{number}": redirect(f"/long/{number + 1}") for number in range(count)}


ATTACKS = (
    Attack(
        number="H1",
        name="ssrf",
        what="links to loopback, private, link-local and metadata addresses, by number and by name",
        limit="permit.allow_private: every address is checked at connect time",
        pages={"/": links(*PRIVATE)},
        holds=refused_all(*PRIVATE),
    ),
    Attack(
        number="H1",
        name="ssrf-disguised",
        what="the same addresses written in octal, in hexadecimal and as one number",
        limit="addresses are normalised before they are checked",
        pages={"/": links(*DISGUISED)},
        holds=every(no_canary, *(refused(url, "address") for url in DISGUISED.values())),
    ),
    Attack(
        number="H2",
        name="ssrf-carriers",
        what="IPv6 addresses that carry a private IPv4 one, multicast, broadcast and reserved addresses",
        limit="IANA's registries of special addresses; embedded addresses are unwrapped",
        pages={"/": links(*CARRIERS)},
        holds=refused_all(*CARRIERS),
    ),
    Attack(
        number="H3",
        name="rebind",
        what="a name that resolves to a public address at first, and to a private one from then on",
        limit="the address that is connected to is the one that was checked",
        pages={"/": links("/2", "/3", "http://rebind-both.test/"), "*": whole("<> <#n> 1 .")},
        holds=rebound,
    ),
    Attack(
        number="H4",
        name="redirects",
        what="redirects to files, other schemes, private addresses, in a circle and without end",
        limit="http and https only, fetch.max_redirects, loops are detected; each hop is checked again",
        seeds=("/file", "/gopher", "/private", "/metadata", "/circle", "/long/0", "/mail"),
        pages={
            "/file": redirect("file:///etc/passwd"),
            "/gopher": redirect("gopher://127.0.0.1:6379/_FLUSHALL"),
            "/private": redirect(f"http://{INSIDE}/redirected"),
            "/metadata": redirect("//169.254.169.254/redirected"),
            "/circle": redirect("/circle/2"),
            "/circle/2": redirect("/circle"),
            "/mail": redirect("http://redirects.test:25/"),
            **_hops(30),
        },
        holds=every(
            no_canary,
            refused("http://redirects.test/file", "neither http nor https"),
            refused("http://redirects.test/gopher", "neither http nor https"),
            refused(f"http://{INSIDE}/redirected", "private address"),
            refused("http://169.254.169.254/redirected", "link-local address"),
            failed("http://redirects.test/circle", "redirect loop"),
            failed("http://redirects.test/long/0", "max_redirects"),
            ended("http://redirects.test/mail", Outcome.SKIPPED, "port 25"),
            unvisited("file:///etc/passwd"),
        ),
    ),
)
