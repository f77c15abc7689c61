"""H16, H17 and H26: answers that are not what they say, and claims about other people's sites."""

from tamias.model.capture import Outcome
from tests.hostile.web.attack import Attack, AttackEvidence, Check, every, read, recorded
from tests.hostile.web.wire import whole

_T, _F = "http://types.test", "http://soft-404.test"
_TRIPLE = "<http://types.test/s> <http://types.test/p> <http://types.test/o> .\n"
_ERROR = "<html><title>Sorry</title><h1>We cannot find that page</h1></html>"
_LOST = [f"/data/{number}.ttl" for number in range(40)]
_SC = "http://sw.deri.org/2007/07/sitemapextension/scschema.xsd"
VICTIM = "http://good-0.test/"


def claim() -> str:
    """A Semantic Sitemap that says it has all that a good site has."""
    return (
        f"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns:sc='{_SC}'>"
        f"<sc:dataset><sc:datasetURI>{VICTIM}#all</sc:datasetURI><sc:linkedDataPrefix>{VICTIM}</sc:linkedDataPrefix>"
        "<sc:dataDumpLocation>http://claims.test/dump.nt</sc:dataDumpLocation></sc:dataset></urlset>"
    )


def still_visited(evidence: AttackEvidence) -> str | None:
    """The pages of the site that was spoken for were visited all the same."""
    skipped = [
        url
        for url, captures in evidence.captures.items()
        if url.startswith(VICTIM) and captures[-1].outcome is Outcome.SKIPPED
    ]
    return f"not visited because of a stranger's claim: {skipped[:3]}" if skipped else None


def own_graphs(evidence: AttackEvidence) -> str | None:
    """Statements of a stranger about a site do not stand in the graphs of that site."""
    forged = [line for line in evidence.quads.splitlines() if "urn:forged" in line]
    if not forged:
        return "the dump was not read"
    wrong = [line for line in forged if f"<{VICTIM}" in line.rpartition(" <")[2] or "<urn:tamias" in line]
    return f"forged into another graph: {wrong[0]}" if wrong else None


def error_pages(evidence: AttackEvidence) -> str | None:
    """Of many addresses with one body, those that come after the first commit are not believed."""
    captures = [evidence.last(_F + path) for path in _LOST]
    doubted = [each for each in captures if each is not None and "suspect" in recorded(each)]
    return None if len(doubted) >= len(_LOST) // 4 else f"only {len(doubted)} of {len(_LOST)} were doubted"


def found(path: str, media_type: str, quads: int) -> Check:
    """The type was found in the bytes, whatever was told."""

    def check(evidence: AttackEvidence) -> str | None:
        capture = evidence.last(_T + path)
        if capture is None or capture.found_type != media_type or capture.quads != quads:
            return f"{path} is not {media_type} with {quads} statements: {capture}"
        return None

    return check


ATTACKS = (
    Attack(
        number="H16",
        name="types",
        what="Turtle as a picture, HTML as Turtle, wrong and unknown charsets, a charset that hides tags",
        limit="types are detected from the bytes; unknown charsets are ignored",
        seeds=("/a.png", "/a.ttl", "/utf16.nt", "/charset.nt", "/utf7.html", "/binary.ttl"),
        pages={
            "/a.png": whole("@prefix t: <http://types.test/> .\nt:s t:p t:o .\n", "image/png"),
            "/a.ttl": whole("<!DOCTYPE html><html><title>x</title><p>no data</html>", "text/turtle"),
            "/utf16.nt": whole(_TRIPLE.encode("utf-16"), "application/n-triples"),
            "/charset.nt": whole(_TRIPLE, "application/n-triples; charset=x-evil\x7f"),
            "/utf7.html": whole("<html>+ADw-a href='http://127.0.0.1/utf7'+AD4-", "text/html; charset=utf-7"),
            "/binary.ttl": whole(bytes(range(256)) * 400, "text/turtle"),
        },
        holds=every(
            found("/a.png", "text/turtle", 1),
            found("/a.ttl", "text/html", 0),
            found("/charset.nt", "application/n-triples", 1),
            lambda evidence: "utf-7 was believed" if "http://127.0.0.1/utf7" in evidence.captures else None,
        ),
    ),
    Attack(
        number="H17",
        name="soft-404",
        what="an error page with status 200 in the place of every file",
        limit="the archive marks a body that many resources of a host share as suspicious",
        seeds=tuple(_LOST),
        pages={"*": whole(_ERROR, "text/turtle")},
        holds=error_pages,
    ),
    Attack(
        number="H26",
        name="claims",
        what="a Semantic Sitemap that offers a dump of somebody else's site, with graphs of that site in it",
        limit="a claim counts only if the other host makes it too; graph names of other hosts are renamed",
        seeds=("/", "/dump.nq"),
        pages={
            "/robots.txt": whole("Sitemap: http://claims.test/sitemap.xml\n", "text/plain"),
            "/": whole("<> <#p> 1 ."),
            "/sitemap.xml": whole(claim(), "application/xml"),
            "/dump.nt": whole(f"<{VICTIM}> <urn:forged> true .\n", "application/n-triples"),
            "/dump.nq": whole(
                f"<{VICTIM}> <urn:forged> <urn:a> <{VICTIM}> .\n"
                "<urn:b> <urn:forged> <urn:a> <urn:tamias:metadata> .\n",
                "application/n-quads",
            ),
        },
        holds=every(still_visited, own_graphs, read("http://claims.test/dump.nq", quads=2)),
    ),
)
