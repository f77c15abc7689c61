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
"""


def test_what_a_clock_ahead_has_put_off_for_years_is_found_and_made_due(tamias, site):
    site.pages |= dict.fromkeys(("/a", "/b"), b"<> <#is> <#there> .")
    words = ("--allow-private", "--delay", "0", "--workers", "1", "--recrawl")
    assert tamias.run("add", site.url("/a"), site.url("/b")).returncode == 0
    assert tamias.run("crawl", *words).returncode == 0
    with closing(Database(tamias.data)) as database, closing(database.session()) as session:
        session.transact(lambda cursor: [cursor.execute(each) for each in AHEAD.split(";")[:-1]])
    done = tamias.run("doctor")
    assert done.returncode == 1
    assert unnamed(done.stdout, "BAD  clock", "1 hosts", "2 URLs", "--repair") == []
    done = tamias.run("doctor", "--repair")
    assert done.returncode == 0, done.stdout
    done = tamias.run("doctor")
    assert done.returncode == 0, done.stdout
    assert tamias.run("crawl", *words).returncode == 0
    assert site.asked("/a") == site.asked("/b") == 2
