"""Lists of FTP directories into links, and what is refused as a name."""

import io
import json

import pytest

from tamias.features.ftp.listing_analyser import FtpListingAnalyser
from tamias.model.document import Document, LimitExceeded
from tamias.model.finding import Links, Problem
from tamias.model.url import resolve
from tamias.settings import AnalyseSettings
from tests.messages import unnamed, unsaid

BASE = "ftp://example.org/dumps/"


def analysed(*lines, limits=None):
    raw = b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)
    document = Document(url=BASE, stream=io.BytesIO(raw), media_type="application/x-ftp-listing+json")
    return list(FtpListingAnalyser(limits).analyse(document))


def links(findings):
    return [
        resolve(reference, finding.base)
        for finding in findings
        if isinstance(finding, Links)
        for reference in finding.references
    ]


def problems(findings):
    return [(finding.what, finding.line) for finding in findings if isinstance(finding, Problem)]


def test_files_and_directories_are_links_below_the_directory():
    found = analysed({"name": "a.nt", "type": "file", "size": 3}, {"name": "sub", "type": "dir"})
    assert (links(found), problems(found)) == ([BASE + "a.nt", BASE + "sub/"], [])


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("a b", "a%20b"),
        ("http://evil.example", None),
        ("mailto:x", "mailto%3Ax"),
        ("a?b#c;d", "a%3Fb%23c%3Bd"),
        ("100%", "100%25"),
        ("%2e%2e", "%252e%252e"),
        ("über", "%C3%BCber"),
        ("caf\udce9", "caf%E9"),
        ("...", "..."),
        ("a\\b", "a%5Cb"),
        ("..", None),
        (".", None),
        ("", None),
        ("../x", None),
        ("/etc/passwd", None),
        ("a\nb", None),
        ("a\x7f", None),
        ("a\x00", None),
    ],
)
def test_a_name_is_written_as_a_name_or_refused(name, written):
    found = analysed({"name": name, "type": "file"})
    if written is None:
        assert (links(found), len(problems(found))) == ([], 1)
    else:
        assert (links(found), problems(found)) == ([BASE + written], [])


def test_a_refused_name_is_told_with_its_line():
    found = analysed({"name": "a"}, {"name": "../b"})
    [(what, line)] = problems(found)
    assert (unnamed(what, "'../b'"), line) == ([], 2)


def test_what_the_list_itself_could_not_say_is_a_problem():
    [(what, line)] = problems(analysed({"problem": "2 lines"}))
    assert (unnamed(what, "2 lines"), line) == ([], 1)


@pytest.mark.parametrize(
    "line", [b"{", b"[]", b"3", b'{"name": 3}', b"{}", b"\xff", b'{"name": "\\ud800"}', b"[" * 60_000]
)
def test_a_line_that_is_no_entry_is_a_problem_and_the_rest_is_read(line):
    found = analysed(line, {"name": "a"})
    assert (links(found), len(problems(found))) == ([BASE + "a"], 1)


def test_problems_are_counted_once_there_are_many():
    found = analysed(*[{"name": ".."}] * 5, limits=AnalyseSettings(max_errors=2))
    assert not unsaid(problems(found)[2][0], "3", "analyse.max_errors")


def test_many_links_come_in_batches():
    found = analysed(*[{"name": str(number)} for number in range(2500)])
    assert [len(finding.references) for finding in found] == [1000, 1000, 500]


def test_a_limit_of_the_stream_passes_through():
    class Ending(io.RawIOBase):
        def read(self, size=-1):
            raise LimitExceeded("no more")

    document = Document(url=BASE, stream=Ending(), media_type="application/x-ftp-listing+json")
    with pytest.raises(LimitExceeded):
        list(FtpListingAnalyser().analyse(document))
