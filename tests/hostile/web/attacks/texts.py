"""H19 to H22 and H28: text that means something to whoever handles it: queries, terminals, files, records."""

from pyoxigraph import RdfFormat, parse

from tests.hostile.web.attack import Attack, AttackEvidence, every, read
from tests.hostile.web.wire import raw, whole

_I, _W = "http://injections.test", "http://records.test"
SQL = "/x');DROP%20TABLE%20url;--"
ESCAPES = "\x1b[2J\x1b]0;owned\x07\u202e\u2066evil"
_TERMINAL = ("\x1b", "\x07", "\u202e", "\u2066")
FORGED = "http://forged.test/"

_INJECTED = r"""
<http://e.test/a> <http://e.test/p> "x\" . } ; DROP ALL ; INSERT DATA { <urn:injected> <urn:injected> 1 } #" .
<http://e.test/b> <http://e.test/p> <http://e.test/\u003E\u0020\u003Curn:injected\u003E\u0020\u003C> .
<http://e.test/c> <http://e.test/p> "line\nbreak\r<urn:injected> <urn:injected> 1 .\u0085\u2028" .
<http://e.test/d> <http://e.test/p> <http://e.test/"> <urn:injected> <urn:injected> .
"""


def sound_export(evidence: AttackEvidence) -> str | None:
    """What is exported is N-Quads, line by line, and nothing in it says what was only quoted."""
    try:
        for quad in parse(input=evidence.quads.encode(), format=RdfFormat.N_QUADS):
            if str(quad.subject) == "<urn:injected>" or str(quad.predicate) == "<urn:injected>":
                return f"injected: {quad}"
    except (SyntaxError, ValueError) as error:
        return f"the export is no N-Quads: {error}"
    return None


def quiet_terminal(evidence: AttackEvidence) -> str | None:
    """Nothing that steers a terminal was written to it."""
    found = [sign for sign in _TERMINAL if sign in evidence.said]
    return f"written to the terminal: {found}" if found else None


def no_strays(evidence: AttackEvidence) -> str | None:
    """No file has the name that a server wished for."""
    return f"written: {evidence.strays}" if evidence.strays else None


def sound_records(evidence: AttackEvidence) -> str | None:
    """Every record is one that we wrote."""
    if not any(target == _W + "/" for _, target in evidence.warc):
        return "the answer is not in the WARC files"
    forged = [target for _, target in evidence.warc if FORGED in target]
    return f"forged records: {forged}" if forged else None


ATTACKS = (
    Attack(
        number="H19",
        name="injections",
        what="IRIs and literals that would end a query or a line and begin another",
        limit="terms are checked against the grammar before they are written; no query is built from text",
        seeds=("/a.ttl", "/a.nt"),
        pages={
            "/a.ttl": whole(_INJECTED, "text/turtle"),
            "/a.nt": whole(_INJECTED, "application/n-triples"),
        },
        holds=every(sound_export, read(_I + "/a.nt")),
    ),
    Attack(
        number="H20",
        name="sql",
        what="URLs and titles that would end an SQL statement and begin another",
        limit="parameters only",
        seeds=(SQL, "/?q=%27%20OR%20%271%27=%271"),
        pages={
            "*": whole(
                "<title>'; DROP TABLE url; --</title><a href=\"/y';DELETE FROM host;--\">y</a>", "text/html"
            )
        },
        holds=every(
            read("http://sql.test" + SQL),
            lambda evidence: None if len(evidence.of_host("sql.test")) == 3 else "not all were visited",
        ),
    ),
    Attack(
        number="H21",
        name="escapes",
        what="escape sequences, bells and reversed text in headers, status lines, URLs and documents",
        limit="text from outside is made printable before it is shown",
        seeds=("/", "/status", "/%1b[2J%07", "/location"),
        pages={
            "/": whole(
                f"<title>{ESCAPES}</title><a href='/{ESCAPES}'>x</a>", "text/html", ("X-A", "\x1b[2J")
            ),
            "/status": raw(b"HTTP/1.1 500 \x1b[2J\x07\r\nContent-Length: 0\r\n\r\n"),
            "/location": raw(
                b"HTTP/1.1 302 Found\r\nLocation: bad://\x1b[2J\x07\xe2\x80\xae\r\nContent-Length: 0\r\n\r\n"
            ),
            "*": whole(f"<s> <p> '{ESCAPES}' . }} {ESCAPES} broken"),
        },
        holds=every(quiet_terminal, read("http://escapes.test/")),
    ),
    Attack(
        number="H22",
        name="names",
        what="Content-Disposition with a path, with line breaks, and of a megabyte",
        limit="files are named by the digest of their bytes",
        seeds=("/", "/long"),
        pages={
            "/": whole(
                "<> <#p> 1 .",
                "text/turtle",
                ("Content-Disposition", 'attachment; filename="../../../../tmp/tamias-hostile-stray-name"'),
            ),
            "/long": whole(
                "<> <#p> 2 .", "text/turtle", ("Content-Disposition", "attachment; filename=" + "x" * 30_000)
            ),
        },
        holds=every(no_strays, read("http://names.test/", quads=1)),
    ),
    Attack(
        number="H28",
        name="records",
        what="headers with bare line ends and bodies that look like records of a WARC file",
        limit="records are delimited by their length, headers are cleaned when they are written",
        seeds=("/", "/header"),
        pages={
            "/": whole(
                "WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: "
                + FORGED
                + "\r\nContent-Length: 0\r\n\r\n\r\n\r\n",
                "text/plain",
            ),
            "/header": raw(
                b"HTTP/1.1 200 OK\r\nX-A: b\rWARC-Target-URI: http://forged.test/\r\nX-B: \x00c\r\n"
                b"Content-Type: text/turtle\r\nContent-Length: 11\r\n\r\n<> <#p> 1 ."
            ),
        },
        holds=sound_records,
    ),
)
