"""Whatever ends a run before its crawl is done: the exit code, what is printed, and that the printed command
continues the crawl as it was."""

import re
import shlex
import signal
import threading

import pytest

DEPTH = 5
FIRST = ("--crawl", "second", "--allow-private", "--workers", "1", "--depth", str(DEPTH), "--forbid", "no")
COMMAND = re.compile(r"'((?:\w+=\S+ )*)(tamias crawl [^']*)' (?:continues|opens)")


class Crawl:
    """A crawl with a name, of pages that each link to the next, further than it may go."""

    def __init__(self, tamias, site, reply):
        self.tamias, self.site, self.reply = tamias, site, reply
        site.pages = {f"/{page}": f"<> <#to> </{page + 1}> .".encode() for page in range(DEPTH + 3)}

    def run(self, *words):
        return self.tamias.run("crawl", *FIRST, "--delay", "0", *words, self.site.url("/0"))

    def run_until(self, act):
        """Do something to a run that is under way, while one of its requests is not answered."""
        page, done = self.site.pages["/2"], threading.Event()

        def wait(handler):
            done.wait(60)
            self.reply(200, page, Content_Type="text/turtle")(handler)

        self.site.pages["/2"] = wait
        running = self.tamias.start("crawl", *FIRST, "--delay", "1", self.site.url("/0"))
        self.tamias.wait_until(lambda: self.site.asked("/2"))
        act(running)
        done.set()
        running.wait(timeout=120)
        return running

    def urls(self):
        return self.run("--max-urls", "3")

    def time(self):
        return self.run("--max-time", "1.2", "--delay", "0.5")

    def wait(self):
        page, self.site.pages["/2"] = self.site.pages["/2"], self.reply(503, Retry_After="3")
        done = self.run("--max-wait", "0.1")
        self.site.pages["/2"] = page
        return done

    def sink(self):
        """A sink that is away: documents wait for it, URLs do not."""
        return self.run("--max-wait", "0.1", "--sink", "sparql:http://127.0.0.1:1/store")

    def pause(self):
        return self.run_until(lambda _: self.tamias.run("crawls", "pause", "second"))

    def limit(self):
        """One of the whole crawl."""
        assert self.run("--max-urls", "1").returncode == 5
        assert self.tamias.run("crawls", "limit", "second", "--max-urls", "1").returncode == 0
        done = self.run()
        again = self.tamias.run("crawl", "--crawl", "second")
        assert (again.returncode, "unless its limit" in again.stderr) == (5, True), again.stderr
        assert self.tamias.run("crawls", "limit", "second", "--max-urls", "0").returncode == 0
        return done

    def interrupt(self):
        return self.run_until(lambda running: running.send_signal(signal.SIGINT))

    def terminate(self):
        return self.run_until(lambda running: running.send_signal(signal.SIGTERM))

    def trap(self):
        self.tamias.env["TAMIAS_PERMIT__HOST_VISITS"] = "3"
        return self.run()


LIMITS = {
    "urls": (5, "a limit you set"),
    "time": (5, "a limit you set"),
    "wait": (5, "more than --max-wait"),
    "sink": (5, "a sink was away"),
    "pause": (5, "is paused"),
    "limit": (5, "is paused"),
    "interrupt": (130, "interrupted"),
    "terminate": (130, "interrupted"),
    "trap": (5, "1 queue stopped as traps; 1 known URL there"),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_the_command_that_a_limited_run_prints_continues_its_crawl_as_it_was(tamias, site, reply, limit):
    crawl = Crawl(tamias, site, reply)
    done = getattr(crawl, limit)()
    said = done.stderr if isinstance(done.stderr, str) else done.stderr.read()
    code, words = LIMITS[limit]
    assert (done.returncode, words in said) == (code, True), said
    settings, command = COMMAND.search(said).groups()
    assert command == f"tamias crawl --data {tamias.data} --crawl second"
    tamias.env |= dict(each.split("=") for each in settings.split())
    back = ("--sink", "nquads") if limit == "sink" else ()
    again = tamias.run("crawl", *shlex.split(command)[2:], *back)
    assert again.returncode == 0, again.stderr
    pages = [path for path, _ in site.log if path in site.pages]
    assert sorted(set(pages)) == [f"/{page}" for page in range(DEPTH + 1)]
    assert len(pages) == DEPTH + 1 + (limit == "wait") or limit in {"interrupt", "terminate"}


def test_the_printed_command_names_the_file_of_settings_that_the_machine_needs(tamias, site, tmp_path):
    """They are not in the row of the crawl: without its proxy, a crawl would go on from another address."""
    (tmp_path / "mine.toml").write_text("[fetch]\nproxy = 'http://127.0.0.1:1/'\n[crawl]\nmax_wait = 0\n")
    done = tamias.crawl("--config", tmp_path / "mine.toml", site.url("/"))
    assert done.returncode == 5, done.stderr
    (command,) = re.findall("'(tamias crawl .*)' continues", done.stderr)
    again = tamias.run("crawl", *shlex.split(command)[2:])
    assert (again.returncode, site.log) == (5, []), again.stderr
