"""The Model Context Protocol: over HTTP, and over the pipes of a real process."""

import json
import subprocess
import time

import pytest

from tests import commands

from .conftest import CSV, environment

TOOLS = ["search", "versions", "diff", "read", "sparql"]


class Speaker:
    """Sends requests one after another, by whatever way."""

    def __init__(self, send):
        self._send = send
        self._number = 0

    def ask(self, method, **parameters):
        self._number += 1
        asked = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": parameters}
        answer = self._send(asked)
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", self._number)
        return answer

    def call(self, name, **arguments):
        """What a tool says, and whether it failed."""
        result = self.ask("tools/call", name=name, arguments=arguments)["result"]
        return result["content"][0]["text"], result["isError"]


@pytest.fixture(scope="module")
def process(filled):
    command = ["mcp", "--data", str(filled.data)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = commands.start(command, env=environment(), **pipes)
    yield process
    process.communicate(timeout=30)
    assert process.returncode == 0


@pytest.fixture(params=["http", "stdio"])
def speaker(request, client):
    if request.param == "http":
        return Speaker(lambda asked: client.post("/mcp", json=asked).json())
    process = request.getfixturevalue("process")

    def send(asked):
        process.stdin.write(json.dumps(asked).encode() + b"\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    return Speaker(send)


@pytest.mark.parametrize(
    ("asked", "agreed"),
    [("2025-06-18", "2025-06-18"), ("2024-11-05", "2024-11-05"), ("1999-01-01", "2025-11-25")],
)
def test_a_version_of_the_protocol_is_agreed_upon(speaker, asked, agreed):
    who = {"name": "test", "version": "1"}
    told = speaker.ask("initialize", protocolVersion=asked, capabilities={}, clientInfo=who)["result"]
    assert (told["protocolVersion"], told["serverInfo"]["name"]) == (agreed, "tamias")
    assert "tools" in told["capabilities"]


def test_all_tools_are_listed_with_schemas_and_only_read(speaker):
    tools = speaker.ask("tools/list")["result"]["tools"]
    assert [tool["name"] for tool in tools] == TOOLS
    assert all(tool["inputSchema"]["type"] == "object" for tool in tools)
    assert all(tool["annotations"]["readOnlyHint"] for tool in tools)


def test_a_ping_is_answered(speaker):
    assert speaker.ask("ping")["result"] == {}


def test_search_finds_by_title(speaker):
    text, failed = speaker.call("search", words="numbers")
    assert (failed, [hit["url"] for hit in json.loads(text)["hits"]]) == (False, [CSV])


def test_versions_are_listed_by_address(speaker):
    text, _ = speaker.call("versions", url=CSV)
    assert [version["number"] for version in json.loads(text)["versions"]] == [1, 2, 3]


def test_answers_say_how_fresh_they_are_and_whether_visits_go_well(speaker, filled):
    health = {"visited_at": 1_767_225_600_000, "trouble": "failed: 503 Service Unavailable", "missed": 2.6}
    said = {
        "state": "active",
        "last_visit": "2026-01-01T00:00:00.000Z",
        "trouble": health["trouble"],
        "versions_probably_missed": 3,
    }
    change = "UPDATE tamias.resource SET visited_at = %s, trouble = %s, missed = %s WHERE url = %s"
    filled.run(change, *health.values(), CSV)
    try:
        for tool in ("versions", "diff"):
            found = json.loads(speaker.call(tool, url=CSV)[0])
            assert {name: found[name] for name in said} == said
        head = speaker.call("read", url=CSV)[0].splitlines()[0]
        assert all(f"{name} {value}" in head for name, value in said.items())
    finally:
        filled.run(change, None, None, 0.0, CSV)


def test_diff_tells_what_changed_in_the_last_step(speaker):
    text, _ = speaker.call("diff", url=CSV)
    told = json.loads(text)
    assert (told["a"], told["b"], told["diff"]["kind"]) == (2, 3, "rows")
    assert told["diff"]["added"] >= 1


@pytest.mark.parametrize(
    ("which", "content"),
    [({}, "1,4"), ({"version": 1}, "1,2"), ({"at": "2026-01-02T12:00:00Z"}, "1,3")],
    ids=["newest", "number", "time"],
)
def test_read_gives_the_version_that_is_asked_for(speaker, which, content):
    text, failed = speaker.call("read", url=CSV, **which)
    assert (failed, content in text.partition("\n")[2]) == (False, True)


def test_read_gives_no_more_than_is_asked_for(speaker):
    text, _ = speaker.call("read", url=CSV, start=4, characters=3)
    assert text.partition("\n")[2] == "1,4"


def test_sparql_answers_rows(speaker):
    query = f"SELECT ?title {{ <{CSV}> dct:title ?title }}"
    deadline, rows = time.monotonic() + 60, ["title"]
    while rows == ["title"] and time.monotonic() < deadline:  # a service fills its catalogue after it starts
        text, failed = speaker.call("sparql", query=query)
        rows = text.split()
    assert (failed, rows) == (False, ["title", "Numbers"])


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("read", {"url": "http://nowhere.example/"}, "not in the archive"),
        ("read", {}, "`url`"),
        ("read", {"url": CSV, "version": 99}, "no version 99"),
        ("read", {"url": CSV, "characters": 10**9}, "20000"),
        ("search", {"words": 5}, "words"),
        ("search", {"words": "x", "more": 1}, "`more`"),
        ("sparql", {"query": "SELECT"}, ""),
        ("sparql", {"query": "DELETE WHERE { ?s ?p ?o }"}, ""),
    ],
)
def test_what_cannot_be_done_is_told_to_the_assistant(speaker, name, arguments, words):
    text, failed = speaker.call(name, **arguments)
    assert failed
    assert words in text


def test_a_tool_or_method_that_is_not_there_is_an_error_of_the_protocol(speaker):
    codes = [speaker.ask("tools/call", name="write")["error"]["code"], speaker.ask("x/y")["error"]["code"]]
    assert codes == [-32602, -32601]


def test_a_notification_has_no_answer(client):
    answer = client.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (answer.status_code, answer.content) == (202, b"")


def test_a_batch_is_answered_as_one(client):
    asked = [{"jsonrpc": "2.0", "id": each, "method": "ping"} for each in "ab"]
    assert [answer["id"] for answer in client.post("/mcp", json=asked).json()] == ["a", "b"]


@pytest.mark.parametrize("content", [b"{", b"[]", b"5", b'{"jsonrpc": "1.0"}', b"\xff", b"[" * 100_000])
def test_what_is_no_message_is_answered_as_such(client, content):
    answer = client.post("/mcp", content=content)
    assert (answer.status_code, answer.json()["error"]["code"] in (-32700, -32600)) == (200, True)


def test_the_page_of_another_site_is_refused(client):
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    told = [
        client.post("/mcp", json=ping, headers={"Origin": origin}).status_code
        for origin in ("https://evil.example", str(client.base_url).rstrip("/"), "null")
    ]
    assert told == [403, 200, 403]


def test_a_version_that_is_not_spoken_and_a_get_are_refused(client):
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    spoken = client.post("/mcp", json=ping, headers={"MCP-Protocol-Version": "1999-01-01"})
    assert (spoken.status_code, client.get("/mcp").status_code) == (400, 405)
