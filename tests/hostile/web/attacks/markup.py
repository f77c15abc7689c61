"""H8 to H11: documents that are small, well-formed and deadly: entities, contexts, nesting, lying numbers."""

from tamias.model.capture import Outcome
from tests.hostile.web.attack import Attack, AttackEvidence, Check, every, no_canary, read, recorded
from tests.hostile.web.namespace import INSIDE
from tests.hostile.web.wire import Answer, made, whole

RDF_XML, JSON_LD, HTML, XML = "application/rdf+xml", "application/ld+json", "text/html", "application/xml"
_RDF = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e.test/"'
_PASSWD = "root:x:0:0"


def laughs(levels: int, root: str, use: str) -> str:
    """Entities that stand for ten of the one before."""
    lines = ['<!ENTITY l0 "haha">']
    lines += [f'<!ENTITY l{level} "{f"&l{level - 1};" * 10}">' for level in range(1, levels)]
    return f"<?xml version='1.0'?><!DOCTYPE {root} [{''.join(lines)}]>{use.format(f'&l{levels - 1};')}"


def quadratic(root: str, use: str) -> str:
    """One long entity, used often."""
    many = "&long;" * 20_000
    return f"<?xml version='1.0'?><!DOCTYPE {root} [<!ENTITY long '{'x' * 50_000}'>]>{use.format(many)}"


def outside(system: str, root: str, use: str) -> str:
    """An entity that is a file, or an address."""
    return f"<?xml version='1.0'?><!DOCTYPE {root} [<!ENTITY out SYSTEM '{system}'>]>{use.format('&out;')}"


MAP = "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url><loc>http://e.test/{}</loc></url></urlset>"
GRAPH = (
    "<rdf:RDF "
    + _RDF
    + "><rdf:Description rdf:about='http://e.test/s'><e:p>{}</e:p></rdf:Description></rdf:RDF>"
)
PAGE = "<html xmlns='http://www.w3.org/1999/xhtml'><body>{}</body></html>"


def gives_nothing(*urls: str) -> Check:
    """Read or not, nothing of the secret and nothing of the bomb came out of it; the reason is on record."""

    def check(evidence: AttackEvidence) -> str | None:
        if _PASSWD in evidence.quads:
            return "a file of this machine is in the quads"
        for url in urls:
            capture = evidence.last(url)
            if capture is None or capture.outcome not in (Outcome.OK, Outcome.FAILED):
                return f"{url} was not read"
            if capture.extent is not None and capture.extent.length > 1_000_000:
                return f"{url} gave {capture.extent.length} bytes of statements"
        return no_canary(evidence)

    return check


def says(url: str, *words: str) -> Check:
    """Whatever the outcome, the record tells the reason."""

    def check(evidence: AttackEvidence) -> str | None:
        capture = evidence.last(url)
        if capture is None:
            return f"{url} was not visited"
        return (
            None
            if any(word in recorded(capture) for word in words)
            else f"{url} only tells: {recorded(capture)}"
        )

    return check


def nested_context(depth: int) -> str:
    """Contexts within contexts."""
    return '{"@context":' * depth + "{}" + "}" * depth


def looping(other: str) -> Answer:
    """A context that is another one."""
    return whole('{"@context": "' + other + '"}', JSON_LD)


def growing(path: str) -> Answer:
    """A context that is always yet another one."""

    def make(asked: object) -> str:
        number = int(getattr(asked, "query", "") or 0) + 1
        return '{"@context": "http://contexts.test' + path + "?" + str(number) + '"}'

    return made(make, JSON_LD)


def jsonld(context: str) -> Answer:
    """A document that names a context."""
    return whole('{"@context": ' + context + ', "@id": "http://e.test/j", "http://e.test/p": "v"}', JSON_LD)


def lying_hdt() -> bytes:
    """An HDT file whose numbers promise more than there is."""
    start = b"$HDT\x01<http://purl.org/HDT/hdt#HDTv1>\x00\x00\x00\x00"
    header = b"$HDT\x02ntriples\x00length=999999999999;\x00\x00"
    return start + header + b"\xff" * 5000 + bytes(5000)


_D, _X, _S, _C, _N = (
    f"http://{name}.test" for name in ("entities", "rdf-entities", "xml", "contexts", "nesting")
)

ATTACKS = (
    Attack(
        number="H8",
        name="entities",
        what="billion laughs, quadratic blow-up and external entities in sitemaps, XHTML and plain XML",
        limit="no external entity is ever read; analyse.entity_bytes; the parser's own bound on growth",
        seeds=("/laughs.xml", "/quadratic.xml", "/file.xml", "/inside.xml", "/laughs.xhtml", "/file.xhtml"),
        pages={
            "/laughs.xml": whole(laughs(12, "urlset", MAP), XML),
            "/quadratic.xml": whole(quadratic("urlset", MAP), XML),
            "/file.xml": whole(outside("file:///etc/passwd", "urlset", MAP), XML),
            "/inside.xml": whole(outside(f"http://{INSIDE}/entity", "urlset", MAP), XML),
            "/laughs.xhtml": whole(laughs(12, "html", PAGE), "application/xhtml+xml"),
            "/file.xhtml": whole(outside("file:///etc/passwd", "html", PAGE), "application/xhtml+xml"),
        },
        holds=gives_nothing(
            *(
                _D + path
                for path in ("/laughs.xml", "/quadratic.xml", "/file.xml", "/inside.xml", "/file.xhtml")
            )
        ),
    ),
    Attack(
        number="H9",
        name="rdf-entities",
        what="the same in RDF/XML, whose parser aborts its process at nine levels, even if none is used",
        limit="Tamias expands entities itself within analyse.entity_bytes; the sandbox",
        seeds=("/laughs.rdf", "/unused.rdf", "/quadratic.rdf", "/file.rdf", "/inside.rdf"),
        pages={
            "/laughs.rdf": whole(laughs(12, "rdf:RDF", GRAPH), RDF_XML),
            "/unused.rdf": whole(laughs(12, "rdf:RDF", GRAPH.replace("{}", "no{:.0}")), RDF_XML),
            "/quadratic.rdf": whole(quadratic("rdf:RDF", GRAPH), RDF_XML),
            "/file.rdf": whole(outside("file:///etc/passwd", "rdf:RDF", GRAPH), RDF_XML),
            "/inside.rdf": whole(outside(f"http://{INSIDE}/entity", "rdf:RDF", GRAPH), RDF_XML),
        },
        holds=every(
            gives_nothing(
                *(
                    _X + path
                    for path in ("/laughs.rdf", "/unused.rdf", "/quadratic.rdf", "/file.rdf", "/inside.rdf")
                )
            ),
            says(_X + "/laughs.rdf", "entity_bytes", "nested more than"),
            says(_X + "/unused.rdf", "entity_bytes", "nested more than"),
            says(_X + "/quadratic.rdf", "XML entities grow"),
        ),
    ),
    Attack(
        number="H10",
        name="contexts",
        what="JSON-LD contexts at private addresses, in files, in a circle, without end, of 5 MB",
        limit="contexts are fetched like any URL, with the same guard; ten rounds, 1 MiB each",
        seeds=("/inside", "/file", "/circle", "/more", "/large", "/nested"),
        pages={
            "/inside": jsonld(f'"http://{INSIDE}/context"'),
            "/file": jsonld('"file:///etc/passwd"'),
            "/circle": jsonld(f'["{_C}/a"]'),
            "/a": looping(_C + "/b"),
            "/b": looping(_C + "/a"),
            "/more": jsonld(f'"{_C}/next"'),
            "/next": growing("/next"),
            "/large": jsonld(f'"{_C}/five"'),
            "/five": whole('{"@context": {"x": "' + "y" * 5_000_000 + '"}}', JSON_LD),
            "/nested": jsonld(nested_context(100_000)),
        },
        holds=every(
            gives_nothing(
                *(_C + path for path in ("/inside", "/file", "/circle", "/more", "/large", "/nested"))
            ),
            says(_C + "/more", "contexts name each other", "context"),
        ),
    ),
    Attack(
        number="H11",
        name="nesting",
        what="HTML, JSON, Turtle, RDF/XML and XML nested 100,000 deep; a literal of 30 MB; lying HDT",
        limit="analyse.html_nesting, json_depth, turtle_depth, xml_depth, hdt_dictionary; the sandbox",
        seeds=(
            "/a.html",
            "/a.jsonld",
            "/a.ttl",
            "/a.rdf",
            "/a.xml",
            "/long.nt",
            "/a.hdt",
            "/in.html",
            "/a.n3",
        ),
        pages={
            "/a.html": whole("<div>" * 100_000 + "deep", HTML),
            "/a.jsonld": whole('{"@id":' * 100_000 + '"x"' + "}" * 100_000, JSON_LD),
            "/a.ttl": whole(
                "<http://e.test/s> <http://e.test/p> "
                + "[ <http://e.test/p> " * 100_000
                + "1"
                + "]" * 100_000
                + " .",
                "text/turtle",
            ),
            "/a.n3": whole("{" * 100_000 + "}" * 100_000, "text/n3"),
            "/a.rdf": whole(f"<rdf:RDF {_RDF}>" + "<e:s><e:p>" * 20_000, RDF_XML),
            "/a.xml": whole("<?xml version='1.0'?><urlset>" + "<a>" * 100_000, XML),
            "/long.nt": whole(
                '<http://e.test/s> <http://e.test/p> "' + "x" * 30_000_000 + '" .\n', "application/n-triples"
            ),
            "/a.hdt": whole(lying_hdt(), "application/vnd.hdt"),
            "/in.html": whole(
                "<script type='application/ld+json'>" + '{"a":[' * 50_000 + "</script><p>end</p>", HTML
            ),
        },
        holds=every(
            says(_N + "/a.html", "html_nesting"),
            says(_N + "/a.jsonld", "json_depth"),
            says(_N + "/a.ttl", "turtle_depth"),
            says(_N + "/a.n3", "turtle_depth"),
            says(_N + "/a.rdf", "xml_depth"),
            says(_N + "/a.hdt", "HDT", "hdt"),
            says(_N + "/in.html", "json_depth"),
            read(_N + "/long.nt", "16 MiB", "bytes, left out"),
        ),
    ),
)
