"""WACZ files written here are valid to the package `wacz`. `make nightly` installs it."""

import hashlib
import subprocess
import sys
import zipfile
from importlib.util import find_spec

import pytest

from tamias.features.warc.warc_writer import WarcWriter
from tamias.features.warc_exports.wacz import export_wacz
from tamias.model.capture import Body, Capture, Hop, Outcome

pytestmark = pytest.mark.skipif(
    find_spec("wacz") is None, reason="the package wacz, which `make nightly` installs, is not installed"
)

PAGE = b"<!DOCTYPE html><title>A page</title><p>Some text"


def capture(url, media_type, data):
    return Capture(
        url=url,
        started_at=1_700_000_000_000,
        ended_at=1_700_000_000_100,
        outcome=Outcome.OK,
        reason="",
        hops=(Hop(url=url, status=200, headers=(("Content-Type", media_type),), address="192.0.2.1"),),
        body=Body(size=len(data), sha256=hashlib.sha256(data).hexdigest(), data=data),
    )


@pytest.fixture
def package(tmp_path):
    """Pages, documents and a page seen again, in several WARC files."""
    folder = tmp_path / "warc"
    folder.mkdir()
    with WarcWriter(folder, "p", agent="a", accept="b", max_bytes=5_000) as writer:
        for number in range(20):
            writer.write(capture(f"http://a{number}.example/", "text/html; charset=utf-8", PAGE))
            turtle = f"<http://e/{number}> a <http://e/C> .".encode()
            writer.write(capture(f"http://a{number}.example/data?q=é", "text/turtle", turtle))
    path = tmp_path / "crawl.wacz"
    with path.open("wb") as out:
        assert export_wacz(folder, out, title="A crawl") > 1
    return path


def validated(path):
    command = [sys.executable, "-c", "from wacz.main import main; import sys; sys.exit(main())"]
    return subprocess.run(
        [*command, "validate", "-f", str(path)], check=False, capture_output=True, text=True, timeout=300
    )


def test_a_package_is_valid(package):
    told = validated(package)
    assert told.returncode == 0, told.stdout + told.stderr
    assert "Valid" in told.stdout + told.stderr


def test_a_package_that_was_changed_is_not(package, tmp_path):
    changed = tmp_path / "changed.wacz"
    with zipfile.ZipFile(package) as whole, zipfile.ZipFile(changed, "w") as other:
        for name in whole.namelist():
            content = whole.read(name)
            other.writestr(name, content.replace(b"A crawl", b"A crowd") if "pages" in name else content)
    told = validated(changed)
    assert told.returncode != 0 or "invalid" in (told.stdout + told.stderr).lower()
