"""`tamias coverage` beside counts made by hand."""

import gzip
import json
import shutil
from contextlib import closing

import pytest
from click.testing import CliRunner

from tamias.cli.main import cli
from tamias.database.connect import Database
from tamias.frontier.keys import bucket_of, hash64
from tamias.model.capture import Outcome
from tamias.model.errors import UsageError
from tamias.model.url import host_key

BUCKETS = 4
HOST = "INSERT INTO host (bucket, qid, ready_at, hkey) VALUES (%s, %s, 0, %s) ON CONFLICT DO NOTHING"
URL = (
    "INSERT INTO url (bucket, qid, crawl, uid, due, first_seen, score, status, depth, url)"
    " VALUES (%s, %s, 1, %s, 0, 0, 0.5, %s, %s, %s)"
)
CRAWLED = {
    "http://a.example/": 0,
    "http://a.example/1": 1,
    "http://www.b.example/1": 1,
    "http://b.example/2": 2,
    "http://c.example/": 3,
}
MET = {"http://d.example/": 1}


@pytest.fixture(scope="module")
def data(made_once, tmp_path_factory):
    """A database of four buckets in which some URLs were visited, and one was only met."""
    folder = tmp_path_factory.mktemp("coverage") / "data"
    shutil.copytree(made_once, folder)
    with closing(Database(folder)) as database:
        with closing(database.session()) as session:
            session.transact(fill)
        yield folder


def fill(cursor):
    cursor.execute("UPDATE meta SET buckets = %s", [BUCKETS])
    for found, status in ((CRAWLED, Outcome.OK), (MET, Outcome.NEW)):
        for url, depth in found.items():
            qid = hash64(host_key(url))
            bucket = bucket_of(qid, BUCKETS)
            cursor.execute(HOST, [bucket, qid, host_key(url)])
            cursor.execute(URL, [bucket, qid, hash64(url), int(status), depth, url])


LIST = """url,count
http://a.example/1,8
http://b.example/2,1
http://B.example:80/2#top,1
http://d.example/,4
http://a.example/never,2
https://e.example/,1
nonsense,3
http://a.example/1,zero
"""


def coverage(data, listed, *words):
    """`tamias coverage`: what it says."""
    told = ["coverage", "--data", str(data), str(listed), *map(str, words)]
    done = CliRunner().invoke(cli, told, standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.stdout


def report(data, tmp_path, *words):
    path = tmp_path / "list.csv"
    path.write_text(LIST)
    return json.loads(coverage(data, path, "--json", *words))


def test_urls_are_covered_depth_by_depth(data, tmp_path):
    found = report(data, tmp_path)
    assert [(step["depth"], step["crawled"], step["covered"]) for step in found["by_url"]] == [
        (0, 1, 0),
        (1, 3, 1),
        (2, 4, 2),
        (3, 5, 2),
    ]


def test_domains_are_covered_as_soon_as_one_of_their_urls_is(data, tmp_path):
    found = report(data, tmp_path)
    assert [(step["crawled"], step["covered"], step["share"]) for step in found["by_domain"]] == [
        (1, 1, 0.25),
        (2, 2, 0.5),
        (2, 2, 0.5),
        (3, 2, 0.5),
    ]


def test_shares_are_weighted_by_how_often_urls_were_seen(data, tmp_path):
    found = report(data, tmp_path)
    assert found["by_url"][-1]["weighted_share"] == pytest.approx((8 + 2) / 17)
    assert found["by_domain"][-1]["weighted_share"] == pytest.approx((8 + 2 + 2) / 17)


def test_the_top_of_the_list_is_told_apart(data, tmp_path):
    found = report(data, tmp_path, "--top", "2")
    assert found["by_url"][-1]["top_share"] == 0.5


def test_the_share_is_told_by_frequency(data, tmp_path):
    found = report(data, tmp_path)
    assert [(each["least"], each["listed"], each["covered"]) for each in found["by_frequency"]] == [
        (1, 1, 0),
        (2, 2, 1),
        (4, 1, 0),
        (8, 1, 1),
    ]


def test_lines_that_are_no_url_are_counted(data, tmp_path):
    assert report(data, tmp_path)["wrong"] == 2


def test_what_was_only_met_counts_when_asked_for(data, tmp_path):
    assert report(data, tmp_path, "--known")["by_url"][-1]["covered"] == 3


def test_a_packed_text_with_tabs_is_read(data, tmp_path):
    (tmp_path / "list.gz").write_bytes(
        gzip.compress(b"# a comment\nhttp://a.example/1\t3\nhttp://x.example/\n")
    )
    told = coverage(data, tmp_path / "list.gz", "--json")
    assert json.loads(told)["by_url"][-1]["weighted_share"] == 0.75


def test_tables_csv_and_plot_are_written(data, tmp_path):
    (tmp_path / "list").write_text("http://a.example/1\n")
    files = [tmp_path / name for name in ("c.csv", "c.svg")]
    told = coverage(data, tmp_path / "list", "--csv", files[0], "--plot", files[1])
    assert "    1                 3           1   100.00%   100.00%   100.00%" in told
    assert "url,1,3,1,1.000000,1.000000,1.000000\n" in files[0].read_text()
    assert files[1].read_text().count("<polyline") == 6


def test_an_unknown_crawl_is_told_with_those_there_are(data, tmp_path):
    (tmp_path / "list").write_text("http://a.example/1\n")
    with pytest.raises(UsageError, match="there are: default"):
        coverage(data, tmp_path / "list", "--crawl", "none")


def test_a_list_that_is_not_there_is_told(data, tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        coverage(data, tmp_path / "none")
