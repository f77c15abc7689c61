"""The database's clock was a year ahead for a while: what was written then is found, and mended."""

from contextlib import closing

from tamias.database.connect import Database
from tests.messages import unnamed

YEAR = 366 * 86_400_000
AHEAD = f"""
UPDATE host SET token = 1, lease_end = lease_end + {YEAR}, not_before = not_before + {YEAR},
                ready_at = lease_end + {YEAR};
UPDATE url SET due = due + {YEAR} WHERE due < {2**62};
UPDATE queue SET next_due = next_due + {YEAR} WHERE next_due < {2**62};
UPDATE current_document SET started_at = started_at + {YEAR};
UPDATE outbox SET started_at = started_at + {YEAR}, capture = ('1' || substr(capture::text, 2))::uuid;
UPDATE robots SET expires_at = expires_at + {YEAR};
"""


def test_what_a_clock_ahead_has_put_off_for_years_is_found_and_mended(tamias, site):
    urls = [site.url("/a"), site.url("/b")]

    def say(word):
        site.pages |= {f"/{name}": f'<> <http://x.example/is> "{name} {word}" .'.encode() for name in "ab"}
        statements = {f'<{url}> <http://x.example/is> "{url[-1]} {word}"' for url in urls}
        return {f"{each} <{each[1 : each.index('>')]}> ." for each in statements}, statements

    def query():
        done = tamias.run("query", "CONSTRUCT WHERE { ?s <http://x.example/is> ?o }", "--format", "nquads")
        return {line.removesuffix(" .") for line in done.stdout.splitlines()}

    words = ("--allow-private", "--delay", "0", "--workers", "1", "--recrawl")
    quads, statements = say("before")
    assert tamias.run("add", *urls).returncode == 0
    assert tamias.run("crawl", *words).returncode == 0
    assert (tamias.quads(), query()) == (quads, statements)
    with closing(Database(tamias.data)) as database, closing(database.session()) as session:
        session.transact(lambda cursor: [cursor.execute(each) for each in AHEAD.split(";")[:-1]])
    done = tamias.run("doctor")
    assert done.returncode == 1
    assert unnamed(done.stdout, "BAD  clock", "1 host", "2 URLs", "5 records", "--repair") == []
    done = tamias.run("doctor", "--repair")
    assert done.returncode == 0, done.stdout
    done = tamias.run("doctor")
    assert done.returncode == 0, done.stdout
    quads, statements = say("after")
    assert tamias.run("crawl", *words).returncode == 0
    assert (tamias.quads(), query()) == (quads, statements)
    assert site.asked("/robots.txt") == 2


def test_a_crawl_does_not_wait_for_a_lease_that_a_wrong_clock_made_last_for_days(tamias, site):
    site.pages |= {"/a": b"<> <http://x.example/next> </b> .", "/b": b'<> <http://x.example/is> "b" .'}
    words = ("--allow-private", "--delay", "0", "--workers", "1")
    done = tamias.run("crawl", *words, "--max-urls", "1", site.url("/a"))
    assert done.returncode == 5, done.stderr
    with closing(Database(tamias.data)) as database, closing(database.session()) as session:
        session.transact(lambda cursor: [cursor.execute(each) for each in AHEAD.split(";")[:-1]])
    done = tamias.run("crawl", *words, "--max-urls", "9")
    assert done.returncode == 5, done.stderr
    assert unnamed(done.stderr, "366 days", "URL", "left", "tamias doctor", "--repair") == []
    assert tamias.run("doctor", "--repair").returncode == 0
    done = tamias.run("crawl", *words, "--max-urls", "9")
    assert done.returncode == 0, done.stderr
    assert site.asked("/b") == 1
