"""Every way into the archive asks the tombstones: nothing that was forgotten comes back."""

import re
import zipfile

import pytest

from tamias import Archive

from ..conftest import replying
from ..import_captures.test_import import Written

# warcio leaves the files open that it writes bodies to.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

SECRET = "Zaphod Beeblebrox of Magrathea, whom nobody else on this site ever mentions by name"
BODY = f'<#person> <#name> "{SECRET}" .\n'.encode()
OTHER = b'<#other> <#name> "somebody else" .\n'
REASON = "the owner asked for it"


def done(run):
    assert run.returncode == 0, run.stdout + run.stderr
    return run


def expect_nothing_forgotten(tamias):
    """Neither statements of any time nor versions have it, others are there, and `check` finds no trace."""
    assert SECRET not in done(tamias.run("export", "--history")).stdout
    with Archive(tamias.data) as archive:
        bodies = [
            archive.get(resource.url, version=version.number).bytes()
            for resource in archive.resources()
            for version in archive.versions(resource.url)
        ]
    assert BODY not in bodies
    assert any(b"somebody else" in body for body in bodies)
    checked = tamias.run("check")
    assert checked.returncode == 0, checked.stdout


@pytest.fixture(params=[True, False], ids=["a URL", "a version"])
def whole(request):
    """Whether a URL is forgotten, or one version of it."""
    return request.param


@pytest.fixture
def gone(tamias, site, whole):
    """The URL of which something was forgotten; the site still gives the same bytes."""
    site.pages["/gone"] = BODY
    site.pages["/other"] = OTHER + b"<> <#see> </gone> .\n"
    url = site.url("/gone")
    done(tamias.crawl("--sink", "archive", url, site.url("/other")))
    words = () if whole else ("--version", "1")
    done(tamias.run("forget", url, *words, "--reason", REASON))
    expect_nothing_forgotten(tamias)
    return url


def write_warc(path, url, other):
    """A file with the forgotten body in every form that a record can have."""
    file = Written(path)
    first = file.add(url, "2020-01-01T00:00:00Z", BODY)
    file.add(url, "2019-01-01T00:00:00Z", BODY, kind="resource")
    file.add(re.sub("^http:", "HTTP:", url) + "#part", "2021-01-01T00:00:00Z", BODY)
    file.revisit(url, "2022-01-01T00:00:00Z", first)
    file.add(other, "2020-01-01T00:00:00Z", OTHER)
    file.close()
    return file


def as_warc(file):
    return file.path


def as_folder(file):
    return file.path.parent


def as_wacz(file):
    path = file.path.with_suffix(".wacz")
    with zipfile.ZipFile(path, "w") as package:
        package.write(file.path, "archive/a.warc.gz")
    return path


def as_cdx(file):
    path = file.path.with_name("index.cdxj")
    lines = [
        f'example,a)/{at} 20200101000000 {{"filename": "a.warc.gz", "offset": "{offset}"}}\n'
        for at, offset in enumerate(file.offsets)
    ]
    path.write_text("".join(lines))
    return path


@pytest.mark.parametrize("form", [as_warc, as_folder, as_wacz, as_cdx])
def test_an_import_brings_nothing_back(tamias, site, gone, tmp_path, form):
    (tmp_path / "other").mkdir()
    file = write_warc(tmp_path / "other" / "a.warc.gz", gone, site.url("/third"))
    imported = done(tamias.run("import", str(form(file)), *(() if form is as_folder else ("--archive",))))
    assert re.search(r"forgotten +[34]\b", imported.stdout), imported.stdout
    expect_nothing_forgotten(tamias)
    assert "/third" in done(tamias.run("export")).stdout


def test_a_url_that_may_be_fetched_again_gets_nothing_from_before(tamias, gone, tmp_path, whole):
    done(tamias.run("forget", gone, "--lift")) if whole else None
    file = write_warc(tmp_path / "a.warc.gz", gone, gone + "2")
    done(tamias.run("import", str(file.path), "--archive"))
    expect_nothing_forgotten(tamias)


def crawl_seed(tamias, site, gone, tmp_path):
    return tamias.crawl("--sink", "archive", "--recrawl", gone, site.url("/other"))


def crawl_links(tamias, site, gone, tmp_path):
    return tamias.crawl("--sink", "archive", "--recrawl", site.url("/other"))


def crawl_redirect(tamias, site, gone, tmp_path):
    site.pages["/moved"] = replying(302, Location="/gone")
    return tamias.crawl("--sink", "archive", site.url("/moved"))


def crawl_to_warc(tamias, site, gone, tmp_path):
    return tamias.crawl("--sink", "archive", "--sink", "warc", "--recrawl", gone, site.url("/other"))


def crawl_listed_seeds(tamias, site, gone, tmp_path):
    file = write_warc(tmp_path / "a.warc.gz", gone, site.url("/other"))
    return tamias.crawl("--sink", "archive", "--recrawl", "--seeds", file.path)


PLUG_IN = """
from pyoxigraph import Literal, NamedNode, Quad

from tamias.model.capture import Outcome, Request
from tamias.model.finding import Harvest, HarvestEnd, HarvestStep, Quads
from tamias.plugins import Feature


class Larder:
    kinds = frozenset({"larder"})

    async def harvest(self, harvest, client):
        capture = await client.ask(Request(url=harvest.url.replace("/larder", "/gone")))
        text = client.body(capture, 1000).decode() if capture.body else "nothing"
        said = Quad(NamedNode(harvest.url), NamedNode("http://example.org/says"), Literal(text))
        end = HarvestEnd(outcome=Outcome.OK, reason="read", complete=True)
        yield HarvestStep(state=b"end", findings=[Quads([said])], end=end)


FEATURES = [
    Feature(
        name="larder", about="asks", module=__name__, harvesters={"larder": "larder:Larder"}
    )
]
"""


def crawl_by_plug_in(tamias, site, gone, tmp_path):
    folder = tmp_path / "packages"
    about = folder / "larder-1.0.dist-info"
    about.mkdir(parents=True)
    (folder / "larder.py").write_text(PLUG_IN)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: larder\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[tamias.features]\nlarder = larder:FEATURES\n")
    tamias.env["PYTHONPATH"] = str(folder)
    done(tamias.crawl("--no-robots", f"larder:{site.url('/larder')}"))
    assert "example.org/says" in done(tamias.run("export")).stdout


WAYS = [crawl_seed, crawl_links, crawl_redirect, crawl_to_warc, crawl_listed_seeds, crawl_by_plug_in]


@pytest.mark.parametrize("way", WAYS)
def test_a_crawl_brings_nothing_back(tamias, site, gone, tmp_path, way):
    way(tamias, site, gone, tmp_path)  # one of whose seeds nothing may be fetched says so by its exit code
    expect_nothing_forgotten(tamias)


def test_a_backup_that_still_has_it_is_restored_without_it(tamias, tamias_at, site, tmp_path, whole):
    site.pages["/gone"], site.pages["/other"] = BODY, OTHER
    url, folder = site.url("/gone"), tmp_path / "backup"
    done(tamias.crawl("--sink", "archive", "--sink", "warc", url, site.url("/other")))
    done(tamias.run("backup", str(folder)))
    words = () if whole else ("--version", "1")
    done(tamias.run("forget", url, *words, "--reason", REASON))
    done(tamias.run("backup", str(folder)))
    restored = tamias_at("restored")
    done(restored.run("restore", str(folder)))
    expect_nothing_forgotten(restored)


def test_a_restore_that_ends_before_it_erases_leaves_that_to_the_next_command(
    tamias, tamias_at, site, tmp_path
):
    site.pages["/gone"], site.pages["/other"] = BODY, OTHER
    done(tamias.crawl("--sink", "archive", "--sink", "warc", site.url("/gone"), site.url("/other")))
    done(tamias.run("backup", str(tmp_path / "backup")))
    done(tamias.run("forget", site.url("/gone"), "--reason", REASON))
    done(tamias.run("backup", str(tmp_path / "backup")))
    restored = tamias_at("restored")
    restored.env["TAMIAS_WITHOUT"] = "forgetting"  # nothing runs after the rows are there, as after a kill
    done(restored.run("restore", str(tmp_path / "backup")))
    del restored.env["TAMIAS_WITHOUT"]
    assert "restored from a backup" in restored.run("check").stdout
    done(restored.run("check", "--repair"))
    expect_nothing_forgotten(restored)
