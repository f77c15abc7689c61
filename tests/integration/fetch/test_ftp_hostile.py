"""FTP servers that break, stall, lie or attack: the capture says so, nothing is raised or left behind."""

import asyncio
import json
import socket

import pytest
from loopback_web import go_anywhere, until

from tamias.model.capture import Outcome, Request
from tests.messages import unnamed, unsaid


async def silence(session):
    await asyncio.sleep(60)


async def hang_up(session):
    session.writer.close()


async def lie(session):
    """The port is true, the address is not."""
    high, low = divmod(await session.listen(), 256)
    session.writer.write(b"227 Entering Passive Mode (10,1,2,3,%d,%d)\r\n" % (high, low))


def test_a_server_that_lies_about_its_address_is_asked_at_its_own(script):
    asked = []

    def note(address):
        asked.append(address)

    script.forbidden = note
    script.replies |= {"EPSV": b"502 no\r\n", "PASV": lie}
    script.sends("RETR", b"here")
    assert script.fetch("/a").body.data == b"here"
    assert set(asked) == {"127.0.0.1"}


def test_a_forbidden_address_is_refused_without_a_connection(script):
    script.forbidden = lambda address: f"{address} is a private address"
    capture = script.fetch("/a")
    assert (capture.outcome, capture.reason) == (Outcome.REFUSED, "127.0.0.1 is a private address")
    assert (capture.hops, script.commands) == ((), [])


def test_the_data_connection_is_guarded_as_well(script):
    asked = []

    def only_once(address):
        asked.append(address)
        return "no second time" if len(asked) > 1 else None

    script.forbidden = only_once
    script.replies["PASV"] = lie
    script.sends("RETR", b"here")
    capture = script.fetch("/a")
    assert (capture.outcome, capture.reason) == (Outcome.REFUSED, "no second time")


def test_a_file_announced_over_the_limit_is_not_taken(script):
    script.replies["SIZE"] = b"213 999999999999999\r\n"
    script.sends("RETR", b"here")
    capture = script.fetch("/a", settings={"max_bytes": 1000})
    assert capture.outcome == Outcome.FAILED
    assert not unsaid(capture.reason, "max_bytes", "1000")
    assert "RETR" not in script.verbs()


def test_a_file_that_grows_over_the_limit_is_cut_off_and_leaves_no_file(script):
    script.sends("RETR", b"x" * 100_000)
    capture = script.fetch("/a", settings={"max_bytes": 50_000, "memory_bytes": 1000})
    assert (capture.reason, script.spooled()) == ("body larger than max_bytes (50000)", [])


def test_a_file_shorter_than_announced_is_a_failure_worth_another_try(script):
    script.replies["SIZE"] = b"213 1000\r\n"
    script.sends("RETR", b"here")
    capture = script.fetch("/a")
    assert (capture.outcome, capture.retry, capture.body) == (Outcome.FAILED, True, None)
    assert "cut short" in capture.reason


def test_a_transfer_that_the_server_breaks_off_is_a_failure_worth_another_try(script):
    script.sends("RETR", b"here", b"426 broken off\r\n")
    capture = script.fetch("/a")
    assert (capture.outcome, capture.retry, capture.reason) == (Outcome.FAILED, True, "426 broken off")


def test_a_connection_closed_in_mid_transfer_is_a_failure_worth_another_try(script):
    async def begin_and_hang_up(session):
        session.writer.write(b"150 coming\r\n")
        data = await session.data.get()
        data.write(b"he")
        data.close()
        session.writer.close()

    script.replies["RETR"] = begin_and_hang_up
    capture = script.fetch("/a")
    assert (capture.outcome, capture.retry, capture.body) == (Outcome.FAILED, True, None)


@pytest.mark.parametrize("verb", ["USER", "PASS", "CWD", "EPSV", "RETR"])
def test_a_server_that_hangs_up_is_a_failure_worth_another_try(script, verb):
    script.replies[verb] = hang_up
    capture = script.fetch("/sub/a")
    assert (capture.outcome, capture.retry) == (Outcome.FAILED, True)


def test_a_server_that_never_greets_is_given_up(script):
    script.greeting = b""
    capture = script.fetch("/a", settings={"first_byte_timeout": 1.0})
    assert (capture.outcome, capture.retry) == (Outcome.FAILED, True)
    assert not unsaid(capture.reason, "1", "first_byte_timeout")


@pytest.mark.parametrize("verb", ["PASS", "RETR"])
def test_a_server_that_falls_silent_is_given_up(script, verb):
    script.replies[verb] = silence
    capture = script.fetch("/a", settings={"first_byte_timeout": 1.0})
    assert (capture.outcome, capture.retry) == (Outcome.FAILED, True)
    assert "(first_byte_timeout)" in capture.reason


def test_a_server_that_keeps_back_its_last_word_is_given_up(script):
    async def send_and_wait(session):
        await session.send(b"here", b"")
        await silence(session)

    script.replies["RETR"] = send_and_wait
    capture = script.fetch("/a", settings={"total_timeout": 1.0})
    assert (capture.outcome, capture.body) == (Outcome.FAILED, None)
    assert not unsaid(capture.reason, "1", "total_timeout")


def test_a_trickle_is_given_up(script):
    async def trickle(session):
        session.writer.write(b"150 coming\r\n")
        data = await session.data.get()
        while True:
            data.write(b"x")
            await asyncio.sleep(0.05)

    script.replies["RETR"] = trickle
    capture = script.fetch("/a", settings={"min_rate_window": 0.5})
    assert (capture.outcome, capture.retry) == (Outcome.FAILED, True)
    assert "(min_rate)" in capture.reason


def test_a_server_that_ignores_the_farewell_holds_nobody_up(script):
    script.replies |= {"PASS": b"530 no\r\n", "QUIT": silence}
    capture = script.fetch("/a", settings={"total_timeout": 3.0})
    assert capture.outcome is Outcome.REFUSED


def test_an_endless_greeting_is_cut_off(script):
    script.greeting = b"220-welcome\r\n" * 10_000
    assert not unsaid(script.fetch("/a").reason, "max_header_bytes", "65536")


def test_a_server_that_is_none_is_a_failure(script):
    script.greeting = b"SSH-2.0-OpenSSH_9.2\r\n220\r\n"
    capture = script.fetch("/a", settings={"first_byte_timeout": 1.0})
    assert (capture.outcome, capture.hops) == (Outcome.FAILED, ())


def test_a_closed_port_is_a_refused_connection(script):
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]

    async def ask(fetcher):
        return await fetcher.fetch(Request(url=f"ftp://127.0.0.1:{port}/a"), go_anywhere)

    assert unnamed(script.run(ask).reason, "refused", f"127.0.0.1:{port}") == []


@pytest.mark.parametrize(
    ("reply", "outcome", "retry"),
    [
        (b"530 No guests\r\n", Outcome.REFUSED, False),
        (b"530 Too many users, try later\r\n", Outcome.FAILED, True),
        (b"421 Full up\r\n", Outcome.FAILED, True),
        (b"500 What?\r\n", Outcome.FAILED, False),
        (b"332 Which account?\r\n", Outcome.REFUSED, False),
    ],
)
def test_a_refused_login_is_judged_by_its_reply(script, reply, outcome, retry):
    script.replies["PASS"] = reply
    capture = script.fetch("/a")
    assert (capture.outcome, capture.retry, capture.reason) == (outcome, retry, reply.decode().strip())


def test_a_server_that_is_full_at_the_door_is_tried_again(script):
    script.greeting = b"421 Too many connections\r\n"
    capture = script.fetch("/a")
    assert (capture.retry, capture.reason) == (True, "421 Too many connections")


@pytest.mark.parametrize(
    ("reply", "outcome", "retry"),
    [
        (b"550 No such file\r\n", Outcome.GONE, False),
        (b"550 Permission denied\r\n", Outcome.FAILED, False),
        (b"450 In use\r\n", Outcome.FAILED, True),
        (b"551 What?\r\n", Outcome.FAILED, False),
    ],
)
def test_a_refused_file_is_judged_by_its_reply(script, reply, outcome, retry):
    script.replies |= {"RETR": reply, "CWD": b"550 No directory\r\n"}
    capture = script.fetch("/a")
    assert (capture.outcome, capture.retry, capture.reason) == (outcome, retry, reply.decode().strip())


def test_a_password_that_the_server_repeats_is_not_repeated_by_us(script):
    script.replies["PASS"] = b"530 hunter2 is wrong\r\n"
    capture = script.fetch("/a", user="me:hunter2@")
    assert (capture.outcome, "hunter2" in repr(capture)) == (Outcome.REFUSED, False)


def test_a_list_that_is_too_long_is_a_failure_that_names_the_limit(script):
    script.sends("MLSD", b"".join(b"type=file; %d\r\n" % number for number in range(11)))
    capture = script.fetch("/", settings={"max_listing_entries": 10})
    assert capture.outcome == Outcome.FAILED
    assert not unsaid(capture.reason, "max_listing_entries", "10")


def test_a_list_that_is_too_large_is_a_failure_that_names_the_limit(script):
    script.sends("MLSD", b"x" * 20_000)
    capture = script.fetch("/", settings={"max_listing_bytes": 10_000})
    assert not unsaid(capture.reason, "max_listing_bytes", "10000")


def test_a_large_list_leaves_only_its_own_file(script):
    script.sends("MLSD", b"".join(b"type=file; %d\r\n" % number for number in range(5000)))
    capture = script.fetch("/", settings={"memory_bytes": 1000})
    assert [str(path) for path in script.spooled()] == [capture.body.path]


def test_lines_that_cannot_be_read_are_told(script):
    script.sends("MLSD", b"type=file; a\r\nwhatever\r\n")
    lines = [json.loads(line) for line in script.fetch("/").body.data.splitlines()]
    assert lines[1] == {"problem": "1 lines of the list cannot be read, the first: 'whatever'"}


def test_a_list_of_no_known_form_is_asked_for_as_bare_names(script):
    script.sends("LIST", b"[a] file, quite large\r\n")
    script.sends("NLST", b"a\r\nb\r\n")
    lines = [json.loads(line)["name"] for line in script.fetch("/").body.data.splitlines()]
    assert lines == ["a", "b"]


def test_a_directory_that_may_not_be_listed_is_not_gone(script):
    script.replies |= dict.fromkeys(("MLSD", "LIST", "NLST"), b"550 No\r\n")
    capture = script.fetch("/sub/")
    assert (capture.outcome, capture.reason) == (Outcome.FAILED, "550 No")


@pytest.mark.parametrize("path", ["/a%0d%0aDELE%20b", "/%00", "/a%0A/"])
def test_an_address_with_a_line_break_is_refused(script, path):
    capture = script.fetch(path)
    assert (capture.outcome, script.commands) == (Outcome.REFUSED, [])


def test_a_user_name_with_a_line_break_is_refused(script):
    assert script.fetch("/a", user="me%0d%0aDELE%20b:x@").outcome is Outcome.REFUSED


def test_a_post_is_refused(script):
    assert script.fetch("/a", body=b"x").outcome is Outcome.REFUSED


def test_a_cancelled_fetch_leaves_nothing_behind(script):
    async def send_a_part(session):
        session.writer.write(b"150 coming\r\n")
        data = await session.data.get()
        data.write(b"x" * 10_000)
        await silence(session)

    async def start_and_cancel(fetcher):
        task = asyncio.create_task(fetcher.fetch(Request(url=script.url("/a")), go_anywhere))
        await until(lambda: "RETR" in script.verbs() and script.spooled())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    script.replies["RETR"] = send_a_part
    script.run(start_and_cancel, {"memory_bytes": 1000})
    assert script.spooled() == []


def test_a_closed_fetcher_gives_up_what_is_under_way(script):
    async def start_and_close(fetcher):
        task = asyncio.create_task(fetcher.fetch(Request(url=script.url("/a")), go_anywhere))
        await until(lambda: "RETR" in script.verbs())
        await fetcher.close()
        return await task

    script.replies["RETR"] = silence
    capture = script.run(start_and_close)
    assert (capture.outcome, capture.retry, capture.reason) == (
        Outcome.FAILED,
        True,
        "the fetcher was closed",
    )
