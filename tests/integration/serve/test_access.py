"""Named tokens: what each scope opens, what bounds leave out, and the log of who wrote what."""

import json
import re
import stat

import httpx
import pytest

from tests import commands
from tests.messages import unsaid

from .conftest import PORTAL, SECRET, environment

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
OF_SCOPE = {
    "add": ("POST", "/api/v1/post/resource", {"url": "http://scoped.example/{}.csv"}),
    "crawl": ("POST", "/api/v1/crawl?domain=data.example", None),
    "admin": ("GET", "/api/v1/tokens", None),
}


@pytest.fixture
def make(writer, request):
    """`make(scope...)`: a new token with these scopes; its name is the test's own."""
    made = []

    def token(*scopes, **words):
        name = f"t{abs(hash((request.node.nodeid, len(made))))}"
        answer = writer.post("/api/v1/tokens", json={"name": name, "scopes": list(scopes), **words})
        assert answer.status_code == 201, answer.text
        made.append(name)
        return name, answer.json()["token"]

    return token


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def call(client, token, scope, name="x"):
    method, path, body = OF_SCOPE[scope]
    sent = {"json": {"url": body["url"].format(name)}} if body else {}
    return client.request(method, path, headers=bearer(token), **sent)


@pytest.mark.parametrize("scope", ["read", "add", "crawl", "forget", "admin"])
def test_a_token_opens_what_its_scope_says_and_nothing_else(client, make, scope):
    _, token = make(scope)
    for other in OF_SCOPE:
        answer = call(client, token, other, scope)
        allowed = scope in (other, "admin")
        assert (answer.status_code in (200, 201, 202)) is allowed, (other, answer.text)
        if not allowed:
            assert answer.status_code == 403
            assert f'error="insufficient_scope", scope="{other}"' in answer.headers["www-authenticate"]


def test_a_token_is_shown_once_and_stored_as_a_hash(client, writer, make, filled):
    name, token = make("add")
    listed = writer.get("/api/v1/tokens").json()["items"]
    assert [each["scopes"] for each in listed if each["name"] == name] == [["add"]]
    random = token.split("_", 2)[2]
    assert random not in json.dumps(listed)
    [(row,)] = filled.rows("SELECT token::text FROM tamias.token WHERE name = %s", name)
    assert random not in row
    assert random.encode() not in b"".join(
        path.read_bytes() for path in filled.data.rglob("*") if path.is_file()
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda token: token[:-1] + ("a" if token[-1] != "a" else "b"),
        lambda token: re.sub("tam_[0-9a-f]{12}", "tam_000000000000", token),
        lambda token: token + "a",
        lambda token: token.upper(),
        lambda token: token.rpartition("_")[2],
    ],
    ids=["another end", "another id", "longer", "upper case", "random part only"],
)
def test_what_only_looks_like_a_token_opens_nothing(client, make, change):
    _, token = make("admin")
    assert call(client, change(token), "admin").status_code == 401


def test_a_withdrawn_token_and_its_sessions_are_over_at_once(served, client, writer, make):
    name, token = make("add")
    with httpx.Client(base_url=served.address, headers=BROWSER, timeout=30) as user:
        assert user.post("/sign-in", data={"secret": token}).status_code == 303
        assert "Sign out" in user.get("/").text
        assert call(client, token, "add").status_code in (200, 201)
        assert writer.delete(f"/api/v1/tokens/{name}").status_code == 204
        assert call(client, token, "add").status_code == 401
        assert "Sign out" not in user.get("/").text
    assert writer.delete(f"/api/v1/tokens/{name}").status_code == 404


def test_a_token_ends_when_its_time_is_over(client, make, filled):
    name, token = make("add", days=1)
    assert call(client, token, "add").status_code in (200, 201)
    filled.run("UPDATE tamias.token SET expires_at = 1 WHERE name = %s", name)
    assert call(client, token, "add").status_code == 401


@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("http://bound.example/new.csv", 201),
        ("http://deep.sub.example/new.csv", 201),
        ("http://portal.example/new.csv", 201),
        ("http://data.example/a.csv", 200),
        ("http://sub.example/new.csv", 403),
        ("http://other.example/new.csv", 403),
        ("http://bound.example.evil.example/new.csv", 403),
        ("http://BOUND.example:80/upper.csv", 201),
        ("HTTP://portal.example/upper.csv", 201),
        ("http://data.example:80/x/../a.csv", 200),
        ("http://bound.example@evil.example/new.csv", 403),
        ("http://evil.example\\@bound.example/new.csv", 403),
        ("http:evil.example/.sub.example", 403),
        ("http:\\\\evil.example/\\.sub.example", 403),
        ("sftp://evil.example%2F.sub.example/new.csv", 403),
        ("http://paths.example/open/new.csv", 201),
        ("http://paths.example/open/../new.csv", 403),
        ("http://paths.example/open/%2e%2E/new.csv", 403),
        ("http://paths.example/open/..;sid=1/new.csv", 403),
        ("http://paths.example/open", 403),
    ],
)
def test_a_bound_token_adds_only_for_its_hosts_and_what_its_portals_list(client, make, url, status):
    """`data.example/a.csv` is listed by the portal; `other.example` is too, but not this address."""
    bounds = ["bound.example", "*.sub.example", PORTAL, "http://paths.example/open/"]
    _, token = make("add", bounds=bounds)
    answer = client.post("/api/v1/post/resource", headers=bearer(token), json={"url": url})
    assert answer.status_code == status, answer.text
    if status == 403:
        many = [{"url": "http://bound.example/1.csv"}, {"url": url, "portal": PORTAL}]
        assert client.post("/api/v1/post/resources", headers=bearer(token), json=many).status_code == 403
        remove = {"urls": ["http://bound.example/new.csv", url]}
        assert client.post("/api/v1/post/remove", headers=bearer(token), json=remove).status_code == 403
        assert client.get(f"/api/v1/get/dataset/{url}").status_code == 404


@pytest.mark.parametrize(
    ("url", "kind", "status"),
    [
        ("http://sources.example/", "ckan", 201),
        ("http://sources.example/other/", "ckan", 403),
        ("http://sources.example/sitemap.xml", "sitemap", 403),
        ("http://bound.example/", "ckan", 403),
        ("http://bound.example/plain.csv", None, 201),
    ],
)
def test_a_bound_token_adds_a_source_only_if_it_is_one_of_its_bounds(client, make, filled, url, kind, status):
    """A source names what is watched: it could name anything."""
    _, token = make("add", bounds=["bound.example", "http://sources.example/"])
    new = {"url": url, "kind": kind} if kind else {"url": url}
    for path, sent in (("post/resource", new), ("post/resources", [new])):
        answer = client.post(f"/api/v1/{path}", headers=bearer(token), json=sent)
        assert (answer.status_code in (200, 201)) is (status == 201), answer.text
        assert answer.status_code != 403 or "could name anything" in answer.text
    found = filled.rows(
        "SELECT 1 FROM url WHERE url.url = %b AND url.tags && ARRAY['kind=ckan', 'kind=sitemap']", url
    )
    assert len(found) == (1 if kind and status == 201 else 0)


def test_a_bound_token_cannot_say_that_another_portal_lists_its_resource(client, make):
    _, token = make("add", bounds=["listed.example", "http://paths.example/open/"])
    new = {"url": "http://listed.example/1.csv"}
    found = {
        portal: client.post(
            "/api/v1/post/resource", headers=bearer(token), json={**new, "portal": portal}
        ).status_code
        for portal in (PORTAL, "a portal", "http://paths.example/open/")
    }
    assert found == {PORTAL: 403, "a portal": 403, "http://paths.example/open/": 201}


@pytest.mark.parametrize(
    ("bounds", "allowed"),
    [
        (["queue.example"], False),
        (["*.queue.example"], False),
        (["queue.example", "*.queue.example"], True),
    ],
)
def test_a_bound_token_blocks_a_queue_only_if_all_its_hosts_are_its_own(
    client, writer, make, bounds, allowed
):
    """By default a queue has all subdomains of a domain."""
    writer.post("/api/v1/post/resource", json={"url": "http://www.queue.example/1.csv"})
    _, token = make("crawl", bounds=bounds)
    for action in ("block", "unblock"):
        path = f"/api/v1/frontier/{action}?host=queue.example"
        answer = client.post(path, headers=bearer(token))
        assert answer.status_code == (200 if allowed else 403), answer.text


@pytest.mark.parametrize(
    "url",
    [
        "http://me:hunter22@night.example/1.csv",
        "http:me:hunter22@night.example/1.csv",
        "http://me:hunter22@night.example:bad/",
        "http:me:hunter22@night.example:bad/",
        "http://me:" + "hunter22" * 40 + "@night.example/",
        "http://night.example/\0?hunter",
        "night\0.example",
    ],
)
@pytest.mark.parametrize("path", ["/api/v1/post/resource", "/api/v1/tags"])
def test_what_a_refused_call_was_about_is_logged_without_its_password(
    client, writer, make, filled, url, path
):
    name, token = make("add", "crawl", bounds=["day.example"])
    answer = client.post(path, headers=bearer(token), json={"url": url})
    assert answer.status_code == 403, answer.text
    assert "hunter22" not in answer.text
    [entry] = writer.get("/api/v1/audit", params={"who": name}).json()["items"]
    assert entry["outcome"].startswith(f"403 the token '{name}' is bound to day.example, not ")
    assert "night" in entry["targets"][0]
    assert "hunter22" not in json.dumps(entry)
    assert "hunter22" not in (filled.data / "log" / "audit.jsonl").read_text()


def test_a_bound_token_steers_only_its_own_hosts(client, make, filled):
    _, token = make("crawl", bounds=["data.example"])
    headers = bearer(token)
    inside, outside = filled.put("http://data.example/b.csv"), filled.put("http://else.example/b.csv")
    asked = {
        f"/api/v1/crawl?id={inside}": 202,
        f"/api/v1/crawl?id={outside}": 403,
        "/api/v1/crawl?domain=data.example": 202,
        "/api/v1/crawl?domain=else.example": 403,
        "/api/v1/frontier/block?host=else.example": 403,
        "/api/v1/frontier/pause?crawl=default": 403,
    }
    found = {path: client.post(path, headers=headers).status_code for path in asked}
    assert found == asked


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "secret"},
        {"name": "a b"},
        {"name": ""},
        {"scopes": []},
        {"scopes": ["all"]},
        {"bounds": ["not a host"]},
        {"scopes": ["admin"], "bounds": ["a.example"]},
        {"days": 0},
        {"unknown": 1},
    ],
)
def test_a_token_that_makes_no_sense_is_refused(writer, wrong):
    new = {"name": "sensible", "scopes": ["add"], **wrong}
    assert writer.post("/api/v1/tokens", json=new).status_code == 400


def test_who_signs_in_with_a_token_may_do_on_pages_what_it_says(served, make, filled):
    _, token = make("add", bounds=["pages.example"])
    name = filled.put("http://pages.example/a.csv", b"a\n1\n")
    with httpx.Client(base_url=served.address, headers=BROWSER, timeout=30) as user:
        user.post("/sign-in", data={"secret": token})
        form = {"token": re.search(r'name="token" value="([0-9a-f]+)"', user.get("/add").text)[1]}
        assert user.post("/add", data={**form, "url": "http://pages.example/b.csv"}).status_code == 201
        refused = user.post("/add", data={**form, "url": "http://else.example/b.csv"})
        assert refused.status_code == 403
        assert not unsaid(refused.text, "pages.example", "else.example/b.csv")
        assert user.post(f"/dataset/{name}/watching", data={**form, "do": "stop"}).status_code == 303
        visit = user.post(f"/dataset/{name}/watching", data={**form, "do": "visit"})
        assert visit.status_code == 403
        assert "has no scope &#39;crawl&#39;" in visit.text
        assert user.get("/access").status_code == 403


def test_tokens_are_made_and_withdrawn_on_a_page(served, client, writer):
    with httpx.Client(base_url=served.address, headers=BROWSER, timeout=30) as user:
        user.post("/sign-in", data={"secret": SECRET})
        form = {"token": re.search(r'name="token" value="([0-9a-f]+)"', user.get("/access").text)[1]}
        made = user.post("/access", data={**form, "name": "paged", "scopes": "add, crawl", "bounds": ""})
        assert made.status_code == 201
        token = re.search(r"tam_[0-9a-f]{12}_[\w-]{43}", made.text)[0]
        assert call(client, token, "add", "paged").status_code == 201
        assert token not in user.get("/access").text
        assert user.post("/access", data={"name": "paged", "do": "withdraw"}).status_code == 403
        assert user.post("/access", data={**form, "name": "paged", "do": "withdraw"}).status_code == 303
        assert call(client, token, "add").status_code == 401
        wrong = user.post("/access", data={**form, "name": "paged", "scopes": "everything"})
        assert wrong.status_code == 422
    assert client.get("/access").status_code == 403


def test_a_scripted_day_is_in_the_log_call_by_call(client, writer, make, filled):
    """Who, what, about what and how it ended; in the database, over REST, and as JSON lines."""
    alice, token = make("add", bounds=["day.example"])
    steps = [
        ("POST", "/api/v1/post/resource", {"url": "http://day.example/1.csv"}),
        ("POST", "/api/v1/post/resources", [{"url": f"http://day.example/{n}.csv"} for n in range(30)]),
        ("POST", "/api/v1/post/resource", {"url": "http://night.example/1.csv"}),
        ("POST", "/api/v1/post/resource", {"url": ""}),
        ("POST", "/api/v1/post/remove", {"urls": ["http://day.example/1.csv"]}),
        ("POST", "/api/v1/crawl?domain=day.example", None),
        ("GET", "/api/v1/resources", None),
    ]
    for method, path, body in steps:
        client.request(method, path, headers=bearer(token), **({"json": body} if body is not None else {}))
    client.post("/api/v1/post/resource", json={"url": "http://nobody.example/"})
    entries = writer.get("/api/v1/audit", params={"who": alice}).json()["items"][::-1]
    told = [(each["what"], each["count"], each["outcome"]) for each in entries]
    bound = f"the token '{alice}' is bound to day.example, not http://night.example/1.csv"
    assert told == [
        ("POST /api/v1/post/resource", 1, "ok"),
        ("POST /api/v1/post/resources", 30, "ok"),
        ("POST /api/v1/post/resource", 1, f"403 {bound}"),
        ("POST /api/v1/post/resource", 0, told[3][2]),
        ("POST /api/v1/post/remove", 1, "ok"),
        ("POST /api/v1/crawl", 0, f"403 the token '{alice}' has no scope 'crawl', only add"),
    ]
    assert told[3][2].startswith("400 ")
    assert entries[1]["targets"] == [f"http://day.example/{n}.csv" for n in range(20)]
    file = filled.data / "log" / "audit.jsonl"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    kept = [
        {key: each[key] for key in ("at", "who", "what", "targets", "count", "outcome")} for each in entries
    ]
    assert [each for each in lines if each["who"] == alice] == kept
    assert "nobody.example" not in file.read_text()


def test_what_pages_send_is_logged_with_the_reason_of_a_refusal(served, writer, make):
    name, token = make("add", bounds=["pages.example"])
    with httpx.Client(base_url=served.address, headers=BROWSER, timeout=30) as user:
        user.post("/sign-in", data={"secret": token})
        form = {"token": re.search(r'name="token" value="([0-9a-f]+)"', user.get("/add").text)[1]}
        sent = {
            "/add": [{"url": "http://else.example/b.csv"}, {"url": "http://pages.example/" + "b" * 4096}],
            f"/dataset/{24 * '0'}/watching": [{"do": "stop"}],
        }
        found = [
            user.post(to, data={**form, **each}).status_code for to, forms in sent.items() for each in forms
        ]
    assert found == [403, 400, 404]
    entries = writer.get("/api/v1/audit", params={"who": name}).json()["items"][::-1]
    told = [(each["what"], each["outcome"]) for each in entries if each["what"] != "POST /sign-in"]
    assert told == [
        (
            "POST /add",
            f"403 Nothing was added: the token '{name}' is bound to pages.example, not http://else.example/b.csv.",
        ),
        ("POST /add", "400 The address must have 1 to 4096 characters. Nothing was added."),
        ("POST /dataset/{id}/watching", told[2][1]),
    ]
    assert told[2][1].startswith("404 ")


def test_a_call_is_answered_as_it_ended_also_where_the_log_cannot_be_written(starting, filled):
    """The service says so in its own log, and the line is in the file."""
    running = starting(filled.data, "--no-crawl", TAMIAS_SECRET=SECRET)
    filled.run("ALTER TABLE tamias.audit RENAME TO audit_away")
    try:
        with httpx.Client(base_url=running.address, headers=bearer(SECRET), timeout=30) as client:
            sent = ("http://unlogged.example/1.csv", "mailto:nobody")
            found = [client.post("/api/v1/post/resource", json={"url": url}).status_code for url in sent]
            found.append(client.post("/add", data={"secret": SECRET, "url": sent[0]}).status_code)
    finally:
        filled.run("ALTER TABLE tamias.audit_away RENAME TO audit")
    assert found == [201, 422, 200]
    assert "unlogged.example" in (filled.data / "log" / "audit.jsonl").read_text()
    assert running.stop()[2].count("cannot write the audit log") == 3


def test_the_log_of_a_token_being_made_says_who_made_it(writer, make):
    name, _ = make("read")
    latest = writer.get("/api/v1/audit", params={"limit": 1}).json()["items"][0]
    assert (latest["who"], latest["what"], latest["targets"]) == ("secret", "POST /api/v1/tokens", [name])


def test_the_service_cannot_change_what_is_logged(filled):
    allowed = filled.rows(
        "SELECT privilege_type::text FROM information_schema.role_table_grants"
        " WHERE grantee = 'tamias_service' AND table_name = 'audit' ORDER BY 1"
    )
    assert allowed == [("INSERT",), ("SELECT",)]


def test_commands_make_and_withdraw_tokens_and_are_logged(filled, client):
    def tamias(*words):
        return commands.run(
            [*words, "--data", str(filled.data)],
            env=environment(), capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    made = tamias("token", "make", "commanded", "--scope", "add", "--bound", "cli.example", "--days", "2")
    assert made.returncode == 0, made.stderr
    token = made.stdout.strip()
    answer = client.post(
        "/api/v1/post/resource", headers=bearer(token), json={"url": "http://cli.example/a.csv"}
    )
    assert answer.status_code == 201
    assert tamias("token", "make", "commanded", "--scope", "add").returncode == 2
    assert "cli.example" in tamias("token", "list").stdout
    assert tamias("token", "withdraw", "commanded").returncode == 0
    assert tamias("token", "withdraw", "commanded").returncode == 2
    assert call(client, token, "add").status_code == 401
    log = [json.loads(line) for line in tamias("audit", "--json").stdout.splitlines()]
    ours = [each for each in log if each["who"].startswith("command:") and each["targets"] == ["commanded"]]
    assert [each["what"] for each in ours] == ["token make", "token make", "token withdraw", "token withdraw"]
    assert [each["outcome"] == "ok" for each in ours] == [True, False, True, False]
    for action in ("pause", "resume"):
        assert tamias("crawls", action, "default").returncode == 0
    last = tamias("audit", "--limit", "2").stdout.splitlines()
    assert [line.split(maxsplit=2)[2] for line in last] == [
        "crawls pause  default  ok",
        "crawls resume  default  ok",
    ]


def test_reading_can_be_kept_for_those_who_may(starting, filled):
    shut = starting(filled.data, "--no-crawl", TAMIAS_SECRET=SECRET, TAMIAS_SERVE__PUBLIC="false")
    with httpx.Client(base_url=shut.address, timeout=30) as client:
        words = {"name": "reader", "scopes": ["read"]}
        made = client.post("/api/v1/tokens", headers=bearer(SECRET), json=words)
        assert made.status_code == 201
        paths = ["/api/v1/resources", "/", "/metrics", "/sparql?query=ASK{}", "/openapi.json", "/cdx?url=x"]
        assert {client.get(path).status_code for path in paths} == {401}
        asked = client.get("/", headers=BROWSER)
        assert (asked.status_code, asked.headers["location"]) == (303, "/sign-in?next=/")
        assert [client.get(path).status_code for path in ("/healthz", "/sign-in")] == [200, 200]
        allowed = {client.get(path, headers=bearer(made.json()["token"])).status_code for path in paths[:3]}
        assert allowed == {200}
        assert client.post("/sign-in", data={"secret": made.json()["token"]}).status_code == 303
        assert client.get("/").status_code == 200
        version = f"/api/v1/get/file/id/{filled.put('http://cached.example/a.csv', b'a')}_1"
        stored = [
            client.get(path, headers=bearer(SECRET)).headers["cache-control"]
            for path in (version, "/", "/api/v1/resources", "/api/v1/tokens")
        ]
        assert stored == ["private, no-cache"] * 4
        secret = client.post("/api/v1/tokens", headers=bearer(SECRET), json={**words, "name": "uncached"})
        assert secret.headers["cache-control"] == "no-store"
        style = re.search(r"/static/[^\"']+", client.get("/sign-in").text)[0]
        assert "private" not in client.get(style).headers["cache-control"]
