"""H23 to H25: what was crawled, and who asks, meet the service: scripts, formulas, strangers."""

from collections.abc import Callable

from tests.hostile.web.attack import Attack, AttackEvidence, Check, Probe, every
from tests.hostile.web.wire import whole

SCRIPT = "<script>alert('owned')</script>"
FORMULA = '=HYPERLINK("http://evil.test","x")'
PAGE_URL = "http://scripts.test/"
Wrong = Callable[[Probe], str | None]
_DATASET = (
    "<html><head><title>" + SCRIPT + "</title><script type='application/ld+json'>"
    '{"@context":"https://schema.org/","@type":"Dataset","@id":"http://scripts.test/#d",'
    '"name":"<img src=x onerror=alert(1)>","description":"' + FORMULA.replace('"', '\\"') + '"}'
    "</script></head><body onload='alert(2)'>" + SCRIPT + "</body></html>"
)


def probed(name: str, wrong: Wrong) -> Check:
    """A judgement on what the service said to one question."""

    def check(evidence: AttackEvidence) -> str | None:
        probe = evidence.probes.get(name)
        if probe is None:
            return f"the service was not asked: {name}"
        found = wrong(probe)
        return f"{name}: {found} ({probe.status})" if found else None

    return check


def escaped(probe: Probe) -> str | None:
    """A page of ours shows crawled text as text, and lets no script run that it does not know."""
    if SCRIPT in probe.body or "<img src=x" in probe.body:
        return "crawled markup stands in a page"
    policy = probe.headers.get("content-security-policy", "")
    if "script-src" not in policy and "default-src" not in policy:
        return "no content security policy"
    return (
        "inline scripts are allowed"
        if "'unsafe-inline'" in policy.partition("script-src")[2].split(";")[0]
        else None
    )


def harmless(probe: Probe) -> str | None:
    """An archived page, given out as it is, cannot run in our name."""
    policy = probe.headers.get("content-security-policy", "")
    kept = "sandbox" in policy or "attachment" in probe.headers.get("content-disposition", "")
    if probe.headers.get("x-content-type-options") != "nosniff":
        return "its type may be guessed"
    return None if kept or probe.status >= 400 else "it could run in our name"


def quoted(probe: Probe) -> str | None:
    """No cell begins with what a spreadsheet would carry out."""
    rows = [line.split(",") for line in probe.body.splitlines()[1:]]
    if probe.status != 200:
        return "no table"
    return next(
        (f"a formula: {cell[:40]}" for row in rows for cell in row if cell.lstrip('"')[:1] in tuple("=+@")),
        None,
    )


def turned_away(probe: Probe) -> str | None:
    """An answer that says no."""
    return None if 400 <= probe.status < 500 else "not refused"


ATTACKS = (
    Attack(
        number="H23",
        name="scripts",
        what="scripts in titles, datasets and archived pages that the service shows",
        limit="text is escaped, a strict content security policy, archived pages only in a sandbox",
        pages={"/": whole(_DATASET, "text/html")},
        holds=every(probed("page", escaped), probed("search", escaped), probed("archived", harmless)),
    ),
    Attack(
        number="H24",
        name="formulas",
        what="titles that a spreadsheet would execute, in tables that the service returns",
        limit="such cells get a quotation mark in tables for spreadsheets",
        pages={"/": whole(_DATASET.replace("<img src=x onerror=alert(1)>", "=1+1|cmd"), "text/html")},
        holds=probed("table", quoted),
    ),
    Attack(
        number="H25",
        name="callers",
        what="a foreign host name, no secret, a wrong one, 100 MB, queries that write or call out",
        limit="the secret, serve's limits on bodies, read-only SPARQL",
        seeds=(),
        holds=every(
            probed("no secret", turned_away),
            probed("wrong secret", turned_away),
            probed("huge body", turned_away),
            probed("update", turned_away),
            probed("load", turned_away),
            probed("foreign host", turned_away),
        ),
    ),
)
