"""What an ordinary FTP server has: files, directories, and things that are not there."""

import json
import os
from hashlib import sha256

import pytest
from loopback_ftp import Site
from loopback_web import go_anywhere
from pyftpdlib.handlers import FTPHandler

from tamias.content.containers.documents import documents
from tamias.features.ftp.listing_analyser import FtpListingAnalyser
from tamias.model.capture import Outcome, Request, Stop
from tamias.model.finding import Links
from tamias.model.url import resolve

DATE = "Sat, 03 Feb 2024 04:05:06 GMT"
LISTING = "application/x-ftp-listing+json"


@pytest.fixture
def dated(tree):
    os.utime(tree / "void.ttl", (1706933106, 1706933106))
    return tree


def entries(capture):
    return [json.loads(line) for line in capture.body.data.splitlines()]


def links(capture):
    """The links as the crawler finds them: the body opened by what it is, then analysed."""
    found = []
    for document in documents(capture.body, url=capture.final_url, declared_type=capture.declared_type):
        assert document.media_type in FtpListingAnalyser.media_types
        for finding in FtpListingAnalyser().analyse(document):
            assert isinstance(finding, Links)
            found += [resolve(reference, finding.base) for reference in finding.references]
    return found


def test_a_file_comes_as_it_is(site, dated):
    capture = site.fetch("/void.ttl")
    assert (capture.outcome, capture.body.data) == (Outcome.OK, b"<a> <b> <c> .\n")
    hop = capture.hops[0]
    assert (hop.status, hop.address, hop.url) == (226, "127.0.0.1", site.url("/void.ttl"))
    assert (hop.header("last-modified"), hop.header("content-length")) == (DATE, "14")


def test_a_large_file_goes_to_the_spool(site, tree):
    capture = site.fetch("/dumps/2024/all.nq")
    content = (tree / "dumps" / "2024" / "all.nq").read_bytes()
    assert capture.body.path == str(site.spooled()[0])
    assert (capture.body.size, capture.body.sha256) == (len(content), sha256(content).hexdigest())
    assert capture.wire_bytes >= len(content)


def test_an_empty_file_is_an_empty_body(site):
    assert site.fetch("/dumps/%C3%BCber%20uns.nt").body.size == 0


def test_an_unchanged_file_is_not_taken_again(site, dated):
    capture = site.fetch("/void.ttl", last_modified=DATE)
    assert (capture.outcome, capture.body) == (Outcome.UNCHANGED, None)
    assert "RETR" not in site.verbs()


def test_a_file_of_another_time_is_taken_even_if_it_is_older(site, dated):
    capture = site.fetch("/void.ttl", last_modified="Sun, 03 Feb 2030 04:05:06 GMT")
    assert (capture.outcome, capture.hops[0].header("last-modified")) == (Outcome.OK, DATE)


def test_a_file_that_has_gone_since_is_gone(site):
    assert site.fetch("/nothing.ttl", last_modified=DATE).outcome is Outcome.GONE


@pytest.mark.parametrize("path", ["/nothing.ttl", "/no/such/folder.nt", "/no/such/folder/"])
def test_what_is_not_there_is_gone(site, path):
    capture = site.fetch(path)
    assert (capture.outcome, capture.retry, capture.status) == (Outcome.GONE, False, 550)
    assert capture.reason.startswith("550 ")


def test_a_directory_is_a_list(site):
    capture = site.fetch("/dumps/")
    assert (capture.outcome, capture.declared_type) == (Outcome.OK, LISTING)
    listed = entries(capture)
    assert [(each["name"], each["type"]) for each in listed] == [("2024", "dir"), ("über uns.nt", "file")]
    assert (listed[1]["size"], listed[1]["modified"][-1]) == (0, "Z")


@pytest.mark.parametrize(("lacking", "used"), [({"MLSD"}, "LIST"), ({"MLSD", "LIST"}, "NLST")])
def test_an_older_server_is_asked_for_an_older_list(tree, tmp_path, lacking, used):
    commands = {verb: told for verb, told in FTPHandler.proto_cmds.items() if verb not in lacking}
    site = Site(tree, tmp_path / "spool", proto_cmds=commands)
    try:
        assert [each["name"] for each in entries(site.fetch("/dumps/"))] == ["2024", "über uns.nt"]
        assert site.verbs()[-1] in (used, "QUIT")
    finally:
        site.close()


def test_what_a_server_does_not_know_is_not_asked_of_it_again(tree, tmp_path):
    commands = {verb: told for verb, told in FTPHandler.proto_cmds.items() if verb != "MLSD"}
    site = Site(tree, tmp_path / "spool", proto_cmds=commands)

    async def list_both(fetcher):
        for path in ("/", "/dumps/"):
            await fetcher.fetch(Request(url=site.url(path)), go_anywhere)

    try:
        site.run(list_both)
        assert site.verbs().count("MLSD") == 1
    finally:
        site.close()


def test_a_directory_without_a_slash_redirects_to_one(site):
    capture = site.fetch("/dumps")
    assert [(hop.status, hop.location) for hop in capture.hops] == [(550, site.url("/dumps/")), (226, None)]
    assert capture.final_url == site.url("/dumps/")


def test_permission_is_asked_before_a_directory_without_a_slash_is_listed(site):
    async def stop(target):
        return Stop(Outcome.SKIPPED, f"not wanted: {target}")

    capture = site.fetch("/dumps", follow=stop)
    assert (capture.outcome, capture.reason) == (Outcome.SKIPPED, f"not wanted: {site.url('/dumps/')}")
    assert "MLSD" not in site.verbs()


def test_a_tree_is_walked_by_its_links(site):
    async def walk(fetcher):
        waiting, seen = [site.url("/")], []
        for url in waiting:
            capture = await fetcher.fetch(Request(url=url), go_anywhere)
            seen.append((url, capture.outcome))
            if capture.declared_type == LISTING:
                waiting += links(capture)
        return seen

    paths = ["/", "/dumps/", "/void.ttl", "/dumps/2024/", "/dumps/%C3%BCber%20uns.nt", "/dumps/2024/all.nq"]
    assert site.run(walk) == [(site.url(path), Outcome.OK) for path in paths]
    assert site.verbs().count("PASS") == 1


@pytest.mark.parametrize("name", ["a?b", "a#b", "a;type=d", "a:b", "100%", "%2e%2e", " a ", "a\\b", "'\"<>"])
def test_a_file_of_any_name_is_found_and_taken(site, tree, name):
    (tree / "odd").mkdir()
    (tree / "odd" / name).write_bytes(b"here")

    async def list_and_take(fetcher):
        listed = await fetcher.fetch(Request(url=site.url("/odd/")), go_anywhere)
        return await fetcher.fetch(Request(url=links(listed)[0]), go_anywhere)

    assert site.run(list_and_take).body.data == b"here"


def test_a_name_that_is_no_utf8_is_found_and_taken(script):
    script.sends("MLSD", b"type=file; caf\xe9.nt\r\n")
    script.sends("RETR", b"here")

    async def list_and_take(fetcher):
        listed = await fetcher.fetch(Request(url=script.url("/")), go_anywhere)
        return links(listed), await fetcher.fetch(Request(url=links(listed)[0]), go_anywhere)

    found, capture = script.run(list_and_take)
    assert (found, capture.body.data) == ([script.url("/caf%E9.nt")], b"here")


def test_a_link_to_a_directory_is_found_to_be_one(site, tree):
    (tree / "latest").symlink_to(tree / "dumps" / "2024")
    assert [each["name"] for each in entries(site.fetch("/latest"))] == ["all.nq"]


def test_an_empty_directory_is_an_empty_list_of_its_type(site, tree):
    (tree / "empty").mkdir()
    capture = site.fetch("/empty/")
    assert (capture.outcome, capture.body.size, links(capture)) == (Outcome.OK, 0, [])


def test_a_guest_says_whom_to_write_to(site):
    site.fetch("/void.ttl", settings={"contact": "mailto:crawler@example.org"})
    assert "PASS mailto:crawler@example.org" in site.commands


def test_a_password_is_used_and_shown_nowhere(site):
    capture = site.fetch("/dumps", user="me:secret@")
    assert (capture.outcome, "PASS secret" in site.commands) == (Outcome.OK, True)
    assert "secret" not in repr(capture)
    assert capture.final_url == site.url("/dumps/", "me@")


def test_a_password_serves_for_what_is_found_under_its_user(site):
    async def list_and_take(fetcher):
        listed = await fetcher.fetch(Request(url=site.url("/", "me:secret@")), go_anywhere)
        return await fetcher.fetch(Request(url=links(listed)[1]), go_anywhere)

    capture = site.run(list_and_take)
    assert (capture.outcome, capture.url) == (Outcome.OK, site.url("/void.ttl", "me@"))


def test_a_wrong_password_is_refused_and_shown_nowhere(site):
    capture = site.fetch("/void.ttl", user="me:wrong@")
    assert (capture.outcome, capture.status, "wrong" in repr(capture)) == (Outcome.REFUSED, 530, False)


def test_names_are_resolved_as_the_user_says(site):
    async def by_name(fetcher):
        return await fetcher.fetch(Request(url=f"ftp://data.test:{site.port}/void.ttl"), go_anywhere)

    assert site.run(by_name, {"resolve": {"data.test": "127.0.0.1"}}).outcome is Outcome.OK
