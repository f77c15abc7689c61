"""A large dump: read as a stream, so the worker stays small."""

import threading
from pathlib import Path

LINES = 250_000
MOST_GROWTH = 60 << 20


def dump(site):
    """About 30 MB of N-Triples; every tenth subject is a link to follow."""
    for number in range(LINES):
        yield (
            f"<{site.url(f'/page/{number}')}> <{site.url('/terms')}#number> "
            f'"{number:08d} and some words to make it longer" .\n'
        )


def proportional_memory(pid):
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


class Watch(threading.Thread):
    """The least and the most memory that any worker has had."""

    def __init__(self, tamias):
        super().__init__(daemon=True)
        self.tamias = tamias
        self.seen = []
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(0.1):
            self.seen += filter(None, map(proportional_memory, self.tamias.workers()))


def test_a_large_dump_is_read_whole_by_a_worker_that_stays_small(tamias, site, reply):
    body = "".join(dump(site)).encode()
    assert len(body) > 29_000_000
    site.pages["/dump.nt"] = reply(200, body, **{"Content-Type": "application/n-triples"})
    watch = Watch(tamias)
    watch.start()
    words = ("--max-urls", 1, "--workers", 1, "--exclude", "/page/[0-9]*[1-9]$", "--scope", "host")
    done = tamias.crawl(site.url("/dump.nt"), *words, timeout=120)
    watch.over.set()
    watch.join()
    assert done.returncode == 5, done.stderr
    assert f"{LINES // 10 + 1:,} URLs are left" in done.stderr
    assert len(tamias.quads()) == LINES
    assert max(watch.seen) - min(watch.seen) < MOST_GROWTH, [min(watch.seen), max(watch.seen)]
