"""What cannot be done is told in one sentence, with the documented exit code, and leaves nothing behind."""

import os
import subprocess

import pytest

from tamias.database.connect import Database
from tests.messages import unsaid

PAGE = b'<> <#says> "page" .'


def one_sentence(done):
    """What was said on stderr, if that is one line; that the database starts may be said before."""
    assert done.stdout == ""
    (line,) = done.stderr.removeprefix("starting the database…\n").splitlines()
    assert line.startswith("tamias: ")
    return line


@pytest.fixture
def nothing(tamias_at):
    """A data directory that is not there."""
    return tamias_at("nothing")


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["not a url"], 2, "not a url"),
        (["gopher://example.org/"], 2, "gopher"),
        (["--seeds", "no-such-file"], 2, "no-such-file"),
        (["--seeds", "."], 2, "seeds of ."),
        (["http://127.0.0.1/", "--exclude", "127"], 2, "exclude '127' matches"),
        (["http://127.0.0.1/", "--include", "("], 4, "not a valid regular expression"),
        (["http://127.0.0.1/", "--resolve", "nonsense"], 2, "HOST:ADDRESS"),
        (["http://127.0.0.1/", "--db", "nonsense"], 1, "--db is not the URL"),
        ([], 2, "nothing to crawl"),
        (["--dry-run"], 2, "name one"),
    ],
)
def test_wrong_words_are_told_and_nothing_is_made(nothing, words, code, told):
    done = nothing.run("crawl", *words)
    assert (done.returncode, told in one_sentence(done)) == (code, True), done.stderr
    assert not nothing.data.exists()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[fetch]\ndeley = 1\n", "there is no setting 'fetch.deley'; did you mean 'fetch.delay'?"),
        ("[fetch]\ndelay = 'soon'\n", "fetch.delay (file tamias.toml)"),
        ("not toml", "is not TOML"),
    ],
)
def test_a_configuration_that_makes_no_sense_is_told_and_nothing_is_made(nothing, text, told):
    (nothing.data.parent / "tamias.toml").write_text(text)
    done = nothing.run("crawl", "http://127.0.0.1/")
    assert (done.returncode, told in one_sentence(done)) == (4, True), done.stderr
    assert not nothing.data.exists()


@pytest.mark.parametrize("verb", ["export", "stats", "status"])
def test_verbs_that_read_want_data_that_is_there(nothing, verb):
    done = nothing.run(verb)
    assert (done.returncode, not unsaid(one_sentence(done))) == (10, True)
    assert not nothing.data.exists()


def test_data_of_a_newer_version_is_refused(tamias):
    database = Database(tamias.data)
    session = database.session()
    session.transact(lambda cursor: cursor.execute("UPDATE meta SET schema_version = 9999"))
    session.close()
    database.close()
    done = tamias.crawl("http://127.0.0.1/")
    assert (done.returncode, "newer Tamias" in one_sentence(done)) == (4, True)


def test_a_database_that_refuses_is_told(nothing):
    done = nothing.run("crawl", "http://127.0.0.1/", "--db", "postgresql://nobody@127.0.0.1:1/none")
    assert (done.returncode, not unsaid(one_sentence(done))) == (1, True)
    assert not nothing.data.exists()


def test_an_export_that_cannot_be_written_is_told(tamias, tmp_path):
    for target in (
        tmp_path / "no-such-folder" / "out.nq",
        tamias.data / "pg" / "users.lock" / "out.nq",
        tmp_path,
    ):
        done = tamias.run("export", "-o", str(target))
        assert (done.returncode, f"cannot write {target}" in one_sentence(done)) == (1, True)


@pytest.fixture
def small_disk(tmp_path):
    """`small_disk(megabytes)` is a file system of that size; `grow` gives it more."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(megabytes, *options):
        words = ["-o", ",".join([f"size={megabytes}m", *options]), "tmpfs", str(folder)]
        done = subprocess.run(["mount", "-t", "tmpfs", *words], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
        return folder

    yield mount
    subprocess.run(["umount", "--lazy", str(folder)], check=False)


def test_a_disk_too_small_to_begin_is_told(small_disk, tamias_at):
    small_disk(10)
    tamias = tamias_at("disk/data")
    done = tamias.crawl("http://127.0.0.1/")
    assert (done.returncode, "no disk space" in one_sentence(done)) == (12, True), done.stderr
    assert not list((tamias.data / "pg").glob("[0-9]*"))


@pytest.mark.processes
def test_a_disk_that_fills_up_stops_the_crawl_which_later_goes_on(small_disk, fresh, site, reply):
    line = '<> <#says> "{}" .\n'
    pages = {
        f"/{n}": "".join(line.format(os.urandom(80).hex()) for _ in range(1500)).encode() for n in range(60)
    }
    site.pages |= pages
    used = sum(f.stat().st_size for f in fresh("measure").data.rglob("*") if f.is_file()) // 2**20
    small_disk(used + 4)
    tamias = fresh("disk/data")
    tamias.env["TAMIAS_CRAWL__ROOM"] = "0"
    done = tamias.crawl(*map(site.url, pages), "--scope", "host", "--workers", 1, "--max-wait", 0)
    assert done.returncode == 12, done.stderr
    said = done.stderr.splitlines()[-1]
    assert said.startswith("tamias: ")
    assert not unsaid(said)
    small_disk(used + 200, "remount")
    done = tamias.run("crawl")
    assert done.returncode == 0, done.stderr
    assert len(tamias.quads()) == 60 * 1500
