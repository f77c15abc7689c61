"""Workers that share a database and a store, and no folder: what each found is there for all."""

import shutil
import signal

import pytest
from warcio import ArchiveIterator

LARGE = b"".join(b'<#%d> <#says> "%s" .\n' % (number, b"word " * 20) for number in range(12_000))


@pytest.fixture
def sites(site_at):
    """Two hosts with pages that link each other; one document has segments of its own."""
    made = [site_at(f"127.0.0.{number}") for number in range(2, 4)]
    for one in made:
        links = b"".join(b"<> <#see> <%s> .\n" % other.url("/0").encode() for other in made)
        one.pages |= {
            f"/{number}": links + b'<> <#says> "page %d" ; <#next> </%d> .' % (number, number + 1)
            for number in range(12)
        }
    made[0].pages["/5"] = LARGE
    return made


CRAWL = ("--allow-private", "--delay", "0.01", "--workers", "1", "--store", "s3://bucket/archive")


def captured(machine):
    """The addresses and digests of the answers in an exported WARC file, as another program reads it."""
    done = machine.run("export", "--format", "warc", "-o", str(machine.data.parent / "all.warc.gz"))
    assert done.returncode == 0, done.stderr
    with (machine.data.parent / "all.warc.gz").open("rb") as file:
        # Of two hosts with equal bodies, the later one's answer is a revisit of the other's.
        answers = ("response", "revisit")
        heads = [record.rec_headers for record in ArchiveIterator(file) if record.rec_type in answers]
    return {(head["WARC-Target-URI"], head["WARC-Payload-Digest"]) for head in heads}


def test_what_two_machines_crawled_is_read_by_a_third(machine, sites, object_store, fresh):
    plain = fresh("plain")
    assert plain.crawl("--sink", "warc", sites[0].url("/0")).returncode == 0
    one, two, three = machine("one"), machine("two"), machine("three")
    crawl = one.start("crawl", *CRAWL, "--sink", "warc", sites[0].url("/0"))
    one.wait_until(lambda: len(object_store.objects) > 1)
    worker = two.start("worker", "--store", "s3://bucket/archive", "--workers", "1", "--allow-private")
    _, said = crawl.communicate(timeout=120)
    assert crawl.returncode == 0, said
    worker.send_signal(signal.SIGINT)
    _, said = worker.communicate(timeout=60)
    assert worker.returncode == 0, said
    assert not list(one.data.rglob("*.nq.zst"))
    shutil.rmtree(one.data)
    shutil.rmtree(two.data)

    assert three.quads() == plain.quads()
    assert not list(three.data.rglob("*.nq.zst"))
    checked = three.run("check")
    assert checked.returncode == 0, checked.stdout
    quads = [name for name in object_store.objects if "/rdf/" in name]
    assert quads
    assert all(name.endswith(".nq.zst") for name in quads), "the parts were merged"
    before = dict(object_store.objects)
    assert three.run("backup", str(three.data.parent / "backup")).returncode == 0
    copy = machine("copy")
    del copy.env["TAMIAS_DB"]
    assert copy.run("restore", str(three.data.parent / "backup")).returncode == 0
    assert copy.quads() == plain.quads()
    assert copy.run("check", "--repair").returncode == 0
    assert object_store.objects == before
    # What the worker without --sink fetched is in no WARC file.
    assert captured(three)
    assert captured(three) <= captured(plain)


@pytest.mark.parametrize(
    "place",
    [
        "parts-unnamed:1",
        "before-commit:2",
        pytest.param("part-uploaded:2", marks=pytest.mark.nightly),
        pytest.param("file-merged:1", marks=pytest.mark.nightly),
    ],
)
def test_a_machine_that_is_gone_for_good_takes_nothing_with_it(machine, sites, object_store, fresh, place):
    plain = fresh("plain")
    assert plain.crawl(sites[0].url("/0")).returncode == 0
    one, two = machine("one"), machine("two")
    for each in (one, two):
        each.env |= {"TAMIAS_FRONTIER__LEASE": "5"}
    one.env["TAMIAS_FAULT"] = place
    crawl = one.start("crawl", *CRAWL, sites[0].url("/0"))
    assert any("killed at" in line for line in crawl.stderr)
    one.end()
    shutil.rmtree(one.data)

    done = two.run("crawl", *CRAWL, sites[0].url("/0"), timeout=120)
    assert done.returncode == 0, done.stderr
    assert two.quads() == plain.quads()
    checked = two.run("check", "--repair")
    assert checked.returncode == 0, checked.stdout
    assert two.quads() == plain.quads()
    if place == "parts-unnamed:1":
        parts = {name[: -len(".000000000000")] for name in object_store.objects if name[-12:].isdigit()}
        assert not parts & set(object_store.objects), "what was merged has no parts any more"


def test_a_folder_is_a_store_too(fresh, tamias_at, sites, tmp_path):
    plain = fresh("plain")
    assert plain.crawl(sites[1].url("/0")).returncode == 0
    tamias = fresh("data")
    done = tamias.crawl("--store", tmp_path / "store", sites[1].url("/0"))
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "store" / "rdf").glob("*.nq.zst"))
    assert not list(tamias.data.glob("rdf/*"))
    assert tamias.quads() == plain.quads()
