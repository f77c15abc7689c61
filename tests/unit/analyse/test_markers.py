"""Pages that show which portal made them, their signals, and links of a kind."""

import io

import pytest

from tamias.analyse.html.analyser import HtmlAnalyser
from tamias.model.document import Document
from tamias.model.finding import Links
from tamias.model.site import Metas

URL = "https://data.example/catalogue/page"


def findings(page):
    document = Document(url=URL, stream=io.BytesIO(page.encode()), media_type="text/html")
    return list(HtmlAnalyser().analyse(document))


def kinds(page):
    found = [links for links in findings(page) if isinstance(links, Links) and links.kind]
    return {links.kind: (links.references, links.base) for links in found}


@pytest.mark.parametrize(
    ("page", "kind"),
    [
        ('<meta name="generator" content="ckan 2.10.1">', "ckan"),
        ("<META CONTENT='CKAN 2.9' NAME='Generator'>", "ckan"),
        ('<meta name="generator" content="udata 6">', "udata"),
        ('<script src="/profiles/dkan/themes/x.js"></script>', "dkan"),
        ('<link href="/modules/contrib/dkan/x.css" rel=stylesheet>', "dkan"),
        ("<script>window.socrata = window.socrata || {};</script>", "socrata"),
        ('<script src="https://hubcdn.arcgis.com/opendata-ui/assets/x.js"></script>', "arcgis"),
        ('<html ng-app="ods.core">', "opendatasoft"),
        ('<script src="/resources/js/dv_rebind_bootstrap_ui.js"></script>', "dataverse"),
        ("<body data-invenio-config='{}'>", "zenodo"),
    ],
)
def test_a_portal_is_known_by_its_mark(page, kind):
    assert kinds(page) == {kind: (["/"], URL)}


@pytest.mark.parametrize(
    "page",
    [
        '<meta name="generator" content="WordPress 6"><a href=x>',
        '<meta name="generator" content="Drupal 10 (https://www.drupal.org)">',
        '<meta name="description" content="ckan 2.10.1"><p>ckan socrata dkan',
        "<p>no portal",
    ],
)
def test_other_pages_are_no_portals(page):
    assert kinds(page) == {}


@pytest.mark.parametrize(
    ("told", "root"),
    [
        ("https://data.example/ckan/", "https://data.example/ckan/"),
        ("/sub/", "https://data.example/sub/"),
        ("https://elsewhere.example/", "/"),
        ("http://[bad", "/"),
    ],
)
def test_a_ckan_says_where_it_begins_on_its_own_host(told, root):
    page = f'<meta name=generator content="ckan 2.10"><body data-site-root="{told}">'
    assert kinds(page) == {"ckan": ([root], URL)}


def test_links_of_a_kind_are_told_apart():
    page = (
        "<link rel=sitemap href=s.xml><link rel='alternate sparql' href=/q><a href=x><a rel=sitemap href=m>"
    )
    assert findings(page) == [
        Links(["x", "m"], URL),
        Links(["s.xml"], URL, "sitemap"),
        Links(["/q"], URL, "sparql"),
    ]


def test_a_page_that_forbids_following_shows_no_portal():
    assert kinds("<meta name=robots content=nofollow><meta name=generator content='ckan 2'>") == {}


def test_metas_that_speak_of_use_are_found():
    page = "<meta name=Robots content='noindex'><meta name=TDM-Reservation content=1><meta name=author>"
    [metas] = [finding for finding in findings(page) if isinstance(finding, Metas)]
    assert metas.pairs == [("robots", "noindex"), ("tdm-reservation", "1")]


def test_a_page_without_such_metas_has_no_finding_of_them():
    assert findings("<meta name=author content=x><a href=x>") == [Links(["x"], URL)]
