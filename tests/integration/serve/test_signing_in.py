"""Signing in on the pages, and what a signed-in user can do there."""

import re
import time

import httpx
import pytest

from tamias.features.service.http.callers import COOKIE, SESSION_SECONDS, Secret, new_session
from tamias.model.item import NEVER
from tests.messages import unsaid

from .conftest import SECRET

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


@pytest.fixture
def user(served):
    """A browser that signed in."""
    with httpx.Client(base_url=served.address, headers=BROWSER, timeout=30) as user:
        assert user.post("/sign-in", data={"secret": SECRET, "next": "/add"}).status_code == 303
        yield user


@pytest.fixture
def watched(filled, request):
    """A resource of the test's own: its id and URL."""
    url = f"http://signed.example/{abs(hash(request.node.name))}.csv"
    return filled.put(url, b"a\n1\n"), url


def token(page):
    return re.search(r'name="token" value="([0-9a-f]+)"', page.text)[1]


def state(client, name):
    return client.get(f"/api/v1/get/dataset/{name}").json()["state"]


def test_the_cookie_cannot_be_read_by_scripts_or_sent_by_other_sites(client):
    answer = client.post("/sign-in", data={"secret": SECRET, "next": "/add?url=x"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/add?url=x")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert SECRET not in cookie
    client.cookies.clear()


@pytest.mark.parametrize(
    "next_page", ["https://evil.example/", "//evil.example/", "/\\evil.example", "/\r\nX: y"]
)
def test_signing_in_never_leads_to_another_site(client, next_page):
    answer = client.post("/sign-in", data={"secret": SECRET, "next": next_page})
    assert answer.headers["location"] == "/"
    client.cookies.clear()


@pytest.mark.parametrize("told", ["", "wrong", "wröng"])
def test_a_wrong_secret_signs_nobody_in(client, told):
    answer = client.post("/sign-in", data={"secret": told}, headers=BROWSER)
    assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)


def test_a_page_says_whether_one_is_signed_in(client, user):
    assert ("Sign in" in client.get("/", headers=BROWSER).text, "Sign out" in user.get("/").text) == (
        True,
        True,
    )


def test_the_page_of_an_error_knows_who_is_signed_in_and_leads_others_to_signing_in(client, user):
    unknown = user.get("/no/such/page", headers=BROWSER)
    assert (unknown.status_code, "Sign out" in unknown.text) == (404, True)
    assert not unsaid(unknown.text, "/no/such/page")
    shut = client.get("/access", headers=BROWSER)
    assert shut.status_code == 403
    assert '<a class="button main" href="/sign-in?next=%2Faccess">Sign in</a>' in shut.text


def test_an_address_is_added_without_typing_the_secret_again(user):
    sent = {"url": "http://signed.example/new.csv", "token": token(user.get("/add"))}
    assert user.post("/add", data=sent).status_code == 201


@pytest.mark.parametrize("path", ["/add", "/dataset/{}/watching", "/dataset/{}/forget", "/sign-out"])
@pytest.mark.parametrize("forged", [{}, {"token": ""}, {"token": "0" * 64}])
def test_a_form_of_another_site_does_nothing(user, client, watched, path, forged):
    name, _ = watched
    sent = {"url": "http://signed.example/forged.csv", "do": "stop", "sure": "yes", "reason": "r", **forged}
    assert user.post(path.format(name), data=sent).status_code == 403
    assert state(client, name) == "active"
    assert client.get("/api/v1/get/dataset/http://signed.example/forged.csv").status_code == 404


@pytest.mark.parametrize(
    "cookie",
    [
        "",
        "x",
        "..",
        f"{int(time.time()) + 999}.00.{'0' * 64}",
        new_session(Secret("another secret", "", chosen=True), time.time()),
        new_session(Secret(SECRET, "", chosen=True), time.time() - SESSION_SECONDS - 60),
    ],
    ids=["empty", "short", "dots", "unsigned", "of another secret", "over"],
)
def test_a_cookie_that_is_forged_or_over_is_none(served, cookie):
    with httpx.Client(base_url=served.address, cookies={COOKIE: cookie}, headers=BROWSER) as client:
        assert "Sign in" in client.get("/").text


def test_a_session_does_not_open_the_api(user):
    """Whose routes take the secret only: they have no token that other sites lack."""
    answer = user.post("/api/v1/post/resource", json={"url": "http://signed.example/api.csv"})
    assert answer.status_code == 401


def test_a_dataset_is_stopped_and_watched_again_on_its_page(user, client, watched):
    name, _ = watched
    sent = {"token": token(user.get(f"/dataset/{name}"))}
    stopped = user.post(f"/dataset/{name}/watching", data={**sent, "do": "stop"})
    states = [state(client, name)]
    assert (stopped.status_code, stopped.headers["location"]) == (303, f"/dataset/{name}")
    assert user.post(f"/dataset/{name}/watching", data={**sent, "do": "visit"}).status_code == 409
    user.post(f"/dataset/{name}/watching", data={**sent, "do": "watch"})
    assert [*states, state(client, name)] == ["stopped", "active"]


def test_how_often_and_how_important_is_said_on_the_page(user, client, watched):
    name, url = watched
    sent = {"token": token(user.get(f"/dataset/{name}")), "do": "watch", "every": "12h", "priority": "2.5"}
    user.post(f"/dataset/{name}/watching", data=sent)
    listed = client.get("/api/v1/resources", params={"host": "signed.example", "limit": 1000}).json()["items"]
    assert [(each["every"], each["priority"]) for each in listed if each["url"] == url] == [("12h", 2.5)]
    assert 'value="12h"' in user.get(f"/dataset/{name}").text


@pytest.mark.parametrize(
    ("told", "status"),
    [
        ({"do": "watch", "every": "soon"}, 422),
        ({"do": "watch", "priority": "1000"}, 422),
        ({"do": "watch", "priority": "x"}, 422),
        ({"do": "burn"}, 400),
        ({}, 400),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(user, client, watched, told, status):
    name, _ = watched
    sent = {"token": token(user.get(f"/dataset/{name}")), **told}
    assert user.post(f"/dataset/{name}/watching", data=sent).status_code == status
    assert state(client, name) == "active"


def test_visit_now_makes_the_url_due(user, filled, watched):
    name, url = watched
    sent = {"token": token(user.get(f"/dataset/{name}"))}
    user.post(f"/dataset/{name}/watching", data={**sent, "do": "watch"})
    filled.run("UPDATE tamias.url SET due = %s WHERE url = %s", NEVER, url)
    assert user.post(f"/dataset/{name}/watching", data={**sent, "do": "visit"}).status_code == 303
    [(due,)] = filled.rows("SELECT due FROM tamias.url WHERE url = %s", url)
    assert due < NEVER


def test_whoever_signs_out_may_write_no_longer(user):
    left = user.post("/sign-out", data={"token": token(user.get("/"))})
    assert left.status_code == 303
    assert "Sign in" in user.get("/").text
