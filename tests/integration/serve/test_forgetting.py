"""Takedown over REST: 410 with the reason at once, on every way to the bytes, which are removed soon."""

import re
import time
from urllib.parse import quote

import httpx
import pytest

API = "/api/v1"
REASON = "the owner asked for it"
VERSIONS = [b"a,b\n1,2\n", b"a,b\nsecret,3\n", b"a,b\n1,4\n"]


@pytest.fixture
def put(filled, request):
    """A resource of its own for each test."""
    url = f"http://forget.example/{request.node.name[:40]}.csv"
    contents = [body + request.node.name.encode() + b",9\n" for body in VERSIONS]
    name = filled.put(url, *contents)
    return url, name, contents


def forget(writer, url, **words):
    return writer.post(f"{API}/forget", json={"url": url, "reason": REASON, **words})


def wait_for(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def is_finished(client, url):
    items = client.get(f"{API}/tombstones").json()["items"]
    return all(each["finished"] for each in items if each["url"] == url)


def ways(url, name, number):
    """Every way to one version, and to all of them."""
    stamp = f"2026010{number}000000"
    one = [
        f"{API}/get/file/id/{name}_{number}",
        f"{API}/get/file/{quote(url, safe='')}?version={number}",
        f"{API}/get/file/{quote(url, safe='')}?at=2026-01-0{number}T12:00:00Z",
        f"/memento/{stamp}/{url}",
        f"/dataset/{name}/{number}",
    ]
    every = [
        f"{API}/get/dataset/{url}", f"{API}/get/file/{url}", f"{API}/versions?url={url}", f"/timegate/{url}",
        f"/timemap/link/{url}", f"/timemap/json/{url}", f"/cdx?url={url}", f"/dataset/{name}",
    ]  # fmt: skip
    return one, every


def statuses(client, paths):
    return {path: client.get(path, headers={"Accept": "application/json"}).status_code for path in paths}


def only(client, paths, *allowed):
    """Nothing that is answered otherwise."""
    return {path: status for path, status in statuses(client, paths).items() if status not in allowed}


def test_a_version_is_gone_on_every_way_and_the_others_are_there(client, writer, filled, put):
    url, name, contents = put
    one, every = ways(url, name, 2)
    assert only(client, one, 200) == {}
    answer = forget(writer, url, version=2)
    assert (answer.status_code, answer.json()["versions"]) == (202, 1)
    for _ in range(2):  # at once, and when its bytes are removed
        assert only(client, one, 410) == {}
        assert only(client, every, 200, 302) == {}
        told = client.get(one[0])
        assert told.headers["content-type"] == "application/problem+json"
        assert REASON in told.json()["detail"]
        listed = client.get(f"{API}/versions?url={url}").json()["items"]
        assert [each["number"] for each in listed] == [1, 3]
        for number in (1, 3):
            assert client.get(f"{API}/get/file/id/{name}_{number}").content == contents[number - 1]
        wait_for(lambda: is_finished(client, url))
    assert filled.rows("SELECT number FROM version WHERE resource = %b", name) == [(1,), (3,)]


def test_a_resource_is_gone_on_every_way_and_is_not_added_again(client, writer, filled, put):
    url, name, _ = put
    one, every = ways(url, name, 2)
    assert forget(writer, url).json()["versions"] == 3
    for _ in range(2):
        assert only(client, [*one, *every], 410) == {}
        wait_for(lambda: is_finished(client, url))
    added = writer.post(f"{API}/post/resource", json={"url": url})
    assert added.status_code == 422
    assert REASON in added.json()["detail"]
    assert filled.rows("SELECT 1 FROM resource WHERE resource = %b", name) == []
    assert writer.post(f"{API}/forget/lift", json={"url": url}).json() == {"lifted": [url]}
    assert writer.post(f"{API}/post/resource", json={"url": url}).status_code == 201
    assert client.get(f"{API}/get/file/id/{name}_2").status_code == 410


def test_a_dry_run_says_how_much_and_changes_nothing(client, writer, put):
    url, name, contents = put
    answer = forget(writer, url, dry_run=True)
    assert answer.status_code == 200
    assert (answer.json()["versions"], answer.json()["bytes"]) == (3, sum(map(len, contents)))
    assert client.get(f"{API}/get/file/id/{name}_2").status_code == 200


def test_it_needs_the_scope_and_is_in_the_audit_log(client, writer, put):
    url, name, _ = put
    assert client.post(f"{API}/forget", json={"url": url}).status_code == 401
    token = writer.post(f"{API}/tokens", json={"name": f"t{name}", "scopes": ["add", "crawl"]}).json()[
        "token"
    ]
    refused = client.post(f"{API}/forget", json={"url": url}, headers={"Authorization": f"Bearer {token}"})
    assert refused.status_code == 403
    other = {"name": f"o{name}", "scopes": ["forget"], "bounds": ["other.example"]}
    token = writer.post(f"{API}/tokens", json=other).json()["token"]
    refused = client.post(f"{API}/forget", json={"url": url}, headers={"Authorization": f"Bearer {token}"})
    assert refused.status_code == 403
    assert client.get(f"{API}/get/file/id/{name}_2").status_code == 200
    mine = {"name": f"m{name}", "scopes": ["forget"], "bounds": ["forget.example"]}
    token = writer.post(f"{API}/tokens", json=mine).json()["token"]
    done = client.post(f"{API}/forget", json={"url": url}, headers={"Authorization": f"Bearer {token}"})
    assert done.status_code == 202
    log = writer.get(f"{API}/audit").json()["items"]
    told = [
        (each["who"], each["outcome"][:3])
        for each in log
        if each["what"] == "POST /api/v1/forget" and url in each["targets"]
    ]
    assert (f"m{name}", "ok") in told
    assert (f"o{name}", "403") in told


@pytest.fixture
def signed_in(served, writer):
    """`signed_in(*scopes)`: a browser of somebody with a token of these scopes."""
    opened = []

    def sign_in(*scopes):
        name = f"pages-{time.monotonic_ns()}"
        made = writer.post(f"{API}/tokens", json={"name": name, "scopes": scopes})
        assert made.status_code == 201, made.text
        user = httpx.Client(base_url=served.address, headers={"Accept": "text/html"}, timeout=30)
        opened.append(user)
        assert user.post("/sign-in", data={"secret": made.json()["token"]}).status_code == 303
        return user

    yield sign_in
    for each in opened:
        each.close()


def form_of(user, name, **fields):
    token = re.search(r'name="token" value="([0-9a-f]+)"', user.get(f"/dataset/{name}").text)[1]
    return {"token": token, "reason": REASON, "sure": "yes", **fields}


def test_a_version_and_then_all_of_it_is_forgotten_on_the_page(client, signed_in, put):
    url, name, contents = put
    user = signed_in("read", "forget")
    sent = user.post(f"/dataset/{name}/forget", data=form_of(user, name, version="2"))
    assert (sent.status_code, sent.headers["location"]) == (303, f"/dataset/{name}")
    shown = user.get(f"/dataset/{name}").text
    assert REASON in shown[shown.index('id="forgotten"') :]
    one, _ = ways(url, name, 2)
    only(client, one, 410)
    assert client.get(f"{API}/get/file/id/{name}_1").content == contents[0]
    user.post(f"/dataset/{name}/forget", data=form_of(user, name))
    gone = user.get(f"/dataset/{name}")
    assert gone.status_code == 410
    assert REASON in gone.text
    wait_for(lambda: is_finished(client, url))


@pytest.mark.parametrize(
    ("told", "status"),
    [({"sure": ""}, 422), ({"reason": ""}, 422), ({"version": "x"}, 422), ({"version": "99"}, 400)],
)
def test_unfilled_is_refused(client, signed_in, put, told, status):
    _, name, contents = put
    user = signed_in("read", "forget")
    assert user.post(f"/dataset/{name}/forget", data=form_of(user, name, **told)).status_code == status
    assert client.get(f"{API}/get/file/id/{name}_2").content == contents[1]


def test_who_may_not_forget_sees_no_form_and_is_refused(client, signed_in, put):
    _, name, contents = put
    user = signed_in("read", "add")
    assert 'id="forget"' not in user.get(f"/dataset/{name}").text
    assert user.post(f"/dataset/{name}/forget", data=form_of(user, name)).status_code == 403
    assert client.get(f"{API}/get/file/id/{name}_2").content == contents[1]
