"""Alerts: what needs attention is sent once, by mail and webhook, whatever number of services runs."""

import asyncio
import email
import email.policy
import http.server
import json
import subprocess
import threading
import time
from collections import namedtuple
from contextlib import closing

import httpx
import pytest

from tamias.archive.versions.resources import _SQL as RESOURCES
from tamias.database.connect import Database
from tamias.features.alerts.mail_client import NotSent, send_mail
from tamias.features.alerts.messages import (
    MOST_ATTEMPTS,
    AlertSender,
    archive_alerts,
    claim_message,
    disk_alerts,
    look,
    settle_message,
)
from tamias.features.alerts.settings import AlertsSettings
from tamias.features.service.queries.thread_pool import SessionPool
from tamias.features.service.run import _end
from tamias.settings import Settings
from tests.messages import unsaid

from .conftest import Filled
from .smtp_server import MailReceiver

DAY = 86_400_000
PASSWORD = "let-me-in-42"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tmp_path_factory.mktemp("alerts")


@pytest.fixture
def archive(data):
    """An archive with a resource that is gone, one that fails for days, one for hours, one that is fine."""
    with closing(Filled(data)) as filled:
        filled.run("TRUNCATE tamias.resource, tamias.alert, tamias.alert_message, tamias.alert_round CASCADE")
        filled.run("TRUNCATE tamias.catalogue_news")
        now = filled.session.now()
        for name, state, trouble, visited in (
            ("gone", "gone", "gone", now - DAY),
            ("failing", "active", "the last visit gave no usable answer", now - 5 * DAY),
            ("hiccup", "active", "the last visit gave no usable answer", now - DAY // 24),
            ("fine", "active", None, now),
            ("stopped", "stopped", "gone", now - 9 * DAY),
        ):
            filled.put(f"http://alerts.example/{name}")
            filled.run(
                "UPDATE tamias.resource SET state = %s, trouble = %s, visited_at = %s, versions = 1"
                " WHERE url = %s",
                *(state, trouble, visited, f"http://alerts.example/{name}"),
            )
        filled.run("TRUNCATE tamias.catalogue_news")
        yield filled


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificate")
    make = (
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost"
    )
    alternative = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*make.split(), *alternative], cwd=folder, check=True, capture_output=True)
    return folder / "cert.pem", folder / "key.pem"


@pytest.fixture
def mailbox(certificate):
    made = []

    def make(**words):
        made.append(MailReceiver(certificate, **words))
        return made[-1]

    yield make
    for each in made:
        each.close()


def settings(**words):
    return AlertsSettings(**{"webhook": "http://hook.example/", "disk": 0.0, "digest": 0.0, **words})


def claim(session, **words):
    """All that is due, one after another."""
    return list(iter(lambda: claim_message(session, settings(**words)), None))


def needing(archive, given):
    return [*disk_alerts(archive.data, given), *archive_alerts(archive.session, given)]


def said(archive, **words):
    """What the messages say that a look makes; they count as sent."""
    look(archive.session, archive.data, settings(**words), pause_ms=0)
    claimed = claim(archive.session)
    for each in claimed:
        settle_message(archive.session, each, None)
    return [[alert["text"].split()[0] for alert in json.loads(each.body)["alerts"]] for each in claimed]


def suspect(archive, name, at):
    """A visit that gave a suspicious response, as the archive notes it."""
    archive.run(
        "INSERT INTO tamias.suspect (resource, seen_at, sha256, byte_size, reason, capture)"
        " SELECT resource, %s, '', 1, 'a login page', gen_random_uuid() FROM tamias.resource"
        " WHERE url LIKE '%%/' || %s",
        *(at, name),
    )
    archive.run("UPDATE tamias.resource SET suspicious_since = %s WHERE url LIKE '%%/' || %s", at, name)


def many(archive, state, count):
    """So many resources that have been in trouble for days, each tried at another time."""
    archive.run(
        "INSERT INTO tamias.resource (resource, url, host, state, trouble, added_at, tried_at)"
        " SELECT made.state || n, 'http://many.example/' || made.state || n, 'many.example', made.state,"
        "        'no answer', n, n"
        " FROM (SELECT %s::text AS state) AS made, generate_series(1, %s::int) AS n",
        *(state, count),
    )


def test_what_needs_attention_is_what_the_first_page_says_from_the_set_point_on(archive):
    found = needing(archive, settings())
    assert {(each.kind, each.text.split()[0]) for each in found} == {
        ("gone", "http://alerts.example/gone"),
        ("failing", "http://alerts.example/failing"),
    }
    sooner = needing(archive, settings(failing=0.01))
    assert len(sooner) == 3


def test_disk_catalogue_and_suspicious_responses_are_reported(archive):
    now = archive.session.now()
    archive.run(
        "INSERT INTO tamias.catalogue_news (kind, name, noted_at) VALUES ('resource', 'x', 'yesterday')"
    )
    suspect(archive, "fine", now)
    found = {each.kind: each.text for each in needing(archive, settings(disk=1e12))}
    assert "less than alerts.disk (1e+12)" in found["disk"]
    assert "The catalogue lacks 1 changes" in found["catalogue"]
    assert found["suspicious"].startswith("http://alerts.example/fine gave a suspicious response")


def test_each_thing_is_said_once_and_again_only_after_it_was_over(archive):
    (news,) = said(archive)
    assert sorted(news) == ["http://alerts.example/failing", "http://alerts.example/gone"]
    assert said(archive) == []
    archive.run("UPDATE tamias.resource SET trouble = NULL WHERE url LIKE '%%/failing'")
    assert said(archive) == []
    archive.run("UPDATE tamias.resource SET trouble = 'nothing' WHERE url LIKE '%%/failing'")
    assert said(archive) == [["http://alerts.example/failing"]]


def test_more_in_trouble_than_a_message_has_are_not_said_again_after_every_visit(archive):
    """Visits change when each was tried last, and with it the order of the first page."""
    many(archive, "active", 700)
    many(archive, "gone", 600)
    ((*news,),) = said(archive)
    assert len(news) == len(set(news)) == 1000, "500 of each kind"
    for _ in range(2):
        archive.run("UPDATE tamias.resource SET tried_at = (random() * 1e9)::int8, visited_at = visited_at")
        assert said(archive) == []
    archive.run("UPDATE tamias.resource SET trouble = NULL WHERE url = %s", news[0])
    (more,) = said(archive)
    assert len(more) == 1
    assert more[0] not in news, "there is room for one more"
    archive.run("UPDATE tamias.resource SET trouble = NULL WHERE url = %s", more[0])
    ((third,),) = said(archive)
    assert third not in {*news, *more}


def test_metrics_count_all_that_needs_attention(archive, starting):
    many(archive, "active", 700)
    many(archive, "gone", 600)
    text = httpx.get(f"{starting(archive.data, '--no-crawl').address}/metrics").text
    assert 'tamias_attention{kind="failing"} 701.0' in text
    assert 'tamias_attention{kind="gone"} 601.0' in text


def test_a_suspicious_response_is_over_when_a_good_one_came_that_is_no_new_version(archive):
    suspect(archive, "fine", archive.session.now())
    kinds = {each.kind for each in needing(archive, settings())}
    assert "suspicious" in kinds
    visit = {
        "resource": "",
        "state": "active",
        "now": archive.session.now() + 1,
        "fails": 0,
        "suspicious": False,
        "missed": 0.0,
    }
    [(visit["resource"],)] = archive.rows("SELECT resource FROM tamias.resource WHERE url LIKE '%%/fine'")
    words = ("next_visit", "history", "change_rate", "visited_at", "trouble")
    row = {name: [value] for name, value in (dict.fromkeys(words) | visit).items()}
    archive.session.execute(RESOURCES["note_visits"], row)
    kinds = {each.kind for each in needing(archive, settings())}
    assert "suspicious" not in kinds


def test_each_machine_looks_at_its_own_disk(archive, monkeypatch):
    """One machine is full, the other is not: it is said once, not whenever the other one looks."""
    said(archive)
    usage = namedtuple("usage", "free")

    def look_at(name, free):
        monkeypatch.setattr("platform.node", lambda: name)
        monkeypatch.setattr("shutil.disk_usage", lambda _: usage(free * 1e6))
        look(archive.session, archive.data, settings(disk=1000.0), pause_ms=0)
        claimed = claim(archive.session)
        for each in claimed:
            settle_message(archive.session, each, None)
        return [alert["text"] for each in claimed for alert in json.loads(each.body)["alerts"]]

    (text,) = look_at("left", 10)
    assert not unsaid(text, "10", "MB", archive.data, "alerts.disk", "1000")
    for _ in range(2):
        assert look_at("right", 5000) == []
        assert look_at("left", 9) == []
    (text,) = look_at("right", 20)
    assert "at right" in text
    assert look_at("right", 5000) == []
    assert [
        row[0].split(":")[0] for row in archive.rows("SELECT alert FROM tamias.alert WHERE kind = 'disk'")
    ] == ["disk left"]
    archive.run("UPDATE tamias.alert SET seen_at = seen_at - 2 * 86400000")
    assert look_at("right", 5000) == []
    assert archive.rows("SELECT alert FROM tamias.alert WHERE kind = 'disk'") == [], "the machine is no more"


def test_a_digest_repeats_what_still_needs_attention(archive):
    assert len(said(archive, digest=24.0)) == 1, "the news; the first digest comes a day later"
    assert said(archive, digest=24.0) == []
    archive.run("UPDATE tamias.alert_round SET at = at - 25 * 3600000 WHERE kind = 'digest'")
    mail = {"mail_to": ("a@example.org",), "smtp": "mail.example:25", "webhook": ""}
    look(archive.session, archive.data, settings(**mail, digest=24.0), pause_ms=0)
    (mailed,) = claim(archive.session)
    assert "reported once" not in mailed.body
    assert "still needs attention" in mailed.body
    archive.run("UPDATE tamias.alert_round SET at = at - 25 * 3600000 WHERE kind = 'digest'")
    (digest,) = said(archive, digest=24.0)
    assert sorted(digest) == ["http://alerts.example/failing", "http://alerts.example/gone"]


def test_in_quiet_hours_nothing_is_said_and_later_all_of_it(archive):
    hour = archive.session.now() // 3_600_000 % 24
    assert said(archive, quiet=f"{hour}-{(hour + 2) % 24}") == []
    assert len(said(archive, quiet=f"{(hour + 2) % 24}-{(hour + 3) % 24}")) == 1


def test_what_could_not_be_sent_waits_for_the_end_of_quiet_hours(archive):
    look(archive.session, archive.data, settings(), pause_ms=0)
    (first,) = claim(archive.session)
    settle_message(archive.session, first, "the receiver answered 500")
    archive.run("UPDATE tamias.alert_message SET due = 0")
    hour = archive.session.now() // 3_600_000 % 24
    assert claim(archive.session, quiet=f"{hour}-{(hour + 2) % 24}") == []
    (again,) = claim(archive.session, quiet=f"{(hour + 2) % 24}-{(hour + 3) % 24}")
    assert (again.message, again.attempts) == (first.message, 2)


def test_messages_are_claimed_one_at_a_time(archive):
    """Each for longer than a slow mail server takes: nobody else sends it meanwhile."""
    for _ in range(3):
        archive.run("TRUNCATE tamias.alert")
        look(archive.session, archive.data, settings(), pause_ms=0)
    begun = archive.session.now()
    first = claim_message(archive.session, settings())
    [(message, due)] = archive.rows("SELECT message, due FROM tamias.alert_message WHERE attempts > 0")
    assert message == first.message
    assert due >= begun + 600_000
    assert len({first.message, *(each.message for each in claim(archive.session))}) == 3


def test_many_processes_say_it_once(archive):
    """Each with a session of its own, all at the same moment."""
    found, begin = [], threading.Barrier(8)

    def one():
        with closing(Database(archive.data)) as database, closing(database.session()) as session:
            begin.wait()
            look(session, archive.data, settings())
            found.extend(claim(session))

    threads = [threading.Thread(target=one) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 1


def test_what_cannot_be_sent_is_tried_again_for_about_a_day_and_at_last_given_up(archive):
    look(archive.session, archive.data, settings(), pause_ms=0)
    waited = 0
    for attempt in range(1, MOST_ATTEMPTS + 1):
        (claimed,) = claim(archive.session)
        assert claimed.attempts == attempt
        begun = archive.session.now()
        settle_message(archive.session, claimed, "the receiver answered 500")
        assert claim(archive.session) == []
        [(due,)] = archive.rows("SELECT due FROM tamias.alert_message")
        waited += due - begun if attempt < MOST_ATTEMPTS else 0
        archive.run("UPDATE tamias.alert_message SET due = 0")
    assert DAY <= waited < 1.2 * DAY
    assert claim(archive.session) == []
    [(trouble,)] = archive.rows("SELECT trouble FROM tamias.alert_message")
    assert trouble == "the receiver answered 500"


class Hook(http.server.BaseHTTPRequestHandler):
    """A webhook that remembers."""

    def do_POST(self):
        self.server.received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def test_two_services_send_one_mail_by_tls_and_one_post(archive, starting, mailbox, certificate):
    """The first attempt is turned away by the mail server. The password is in no log and in no file."""
    mails = mailbox(login=("archive", PASSWORD))
    hook = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    hook.received = []
    threading.Thread(target=hook.serve_forever, args=(0.05,), daemon=True).start()
    words = {
        "TAMIAS_ALERTS__MAIL_TO": "a@example.org,b@example.org",
        "TAMIAS_ALERTS__SMTP": mails.place,
        "TAMIAS_ALERTS__SMTP_USER": "archive",
        "TAMIAS_ALERTS__SMTP_CA": str(certificate[0]),
        "TAMIAS_SMTP_PASSWORD": PASSWORD,
        "TAMIAS_ALERTS__WEBHOOK": f"http://127.0.0.1:{hook.server_port}/",
        "TAMIAS_ALERTS__DISK": "0",
        "TAMIAS_ALERTS__DIGEST": "0",
        "TAMIAS_PERMIT__ALLOW_PRIVATE": "true",
    }
    running = [starting(archive.data, "--no-crawl", "-v", **words) for _ in range(2)]
    deadline = time.monotonic() + 60
    while not (mails.mails and hook.received):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    time.sleep(6)  # longer than a round: a second copy would be there
    ended = [each.stop() for each in running]
    hook.shutdown()
    hook.server_close()
    assert (len(mails.mails), len(hook.received)) == (1, 1)
    mail = email.message_from_bytes(mails.mails[0], policy=email.policy.default)
    assert (mail["Subject"], mail["To"]) == ("Tamias: failing 1, gone 1", "a@example.org, b@example.org")
    assert "http://alerts.example/gone is gone." in mail.get_content()
    assert hook.received[0]["subject"] == "Tamias: failing 1, gone 1"
    assert mails.logins == [("archive", PASSWORD)]
    assert not any(b"MAIL" in line or b"AUTH" in line for line in mails.in_clear), "only after STARTTLS"
    assert PASSWORD not in repr(ended)
    kept = b"".join(path.read_bytes() for path in archive.data.rglob("*") if path.is_file())
    assert PASSWORD.encode() not in kept


def test_a_mail_server_without_encryption_or_with_a_strange_certificate_gets_nothing(mailbox, certificate):
    message = email.message_from_string("Subject: x\nFrom: a@b\nTo: c@d\n\nx", policy=email.policy.default)
    strange = mailbox()
    with pytest.raises(NotSent, match="certificate"):
        send_mail(AlertsSettings(smtp=strange.place), message)
    plain = MailReceiver()
    with closing(plain), pytest.raises(NotSent, match="STARTTLS"):
        send_mail(AlertsSettings(smtp=plain.place, smtp_ca=str(certificate[0])), message)
    assert (strange.mails, plain.mails) == ([], [])


def test_a_mail_server_that_turns_mail_or_the_login_away_is_quoted(mailbox, certificate):
    message = email.message_from_string("Subject: x\nFrom: a@b\nTo: c@d\n\nx", policy=email.policy.default)
    busy = mailbox(refusals=1, login=("archive", PASSWORD))
    place = f"localhost:{busy.server_address[1]}"
    server = AlertsSettings(smtp=place, smtp_user="archive", smtp_ca=str(certificate[0]))
    with pytest.raises(NotSent, match="451 try later"):
        send_mail(server, message, PASSWORD)
    with pytest.raises(NotSent, match="535") as refused:
        send_mail(server, message, "wrong-password-1")
    assert "wrong-password-1" not in str(refused.value)
    send_mail(server, message, PASSWORD)
    assert len(busy.mails) == 1


def test_what_cannot_be_encoded_is_trouble_like_any_other(archive, starting, mailbox, certificate):
    """A password and an address that are not ASCII: both are noted, and the service ends well."""
    mails = mailbox(login=("archive", PASSWORD))
    running = starting(
        archive.data,
        "--no-crawl",
        "-v",
        TAMIAS_ALERTS__MAIL_TO="a@example.org",
        TAMIAS_ALERTS__SMTP=mails.place,
        TAMIAS_ALERTS__SMTP_USER="archive",
        TAMIAS_ALERTS__SMTP_CA=str(certificate[0]),
        TAMIAS_SMTP_PASSWORD="pässwörd-77",
        TAMIAS_ALERTS__WEBHOOK="http://127.0.0.1:1/hök",
        TAMIAS_ALERTS__DIGEST="0",
        TAMIAS_PERMIT__ALLOW_PRIVATE="true",
    )
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        troubles = dict(archive.rows("SELECT target, trouble FROM tamias.alert_message"))
        if len(troubles) == 2 and all(troubles.values()):
            break
        time.sleep(0.2)
    code, _, logged = running.stop()
    assert "characters other than ASCII" in troubles["mail"]
    assert "percent-encoded" in troubles["webhook"]
    assert (code, "Traceback" in logged, "rd-77" in logged) == (0, False, False), logged
    assert logged.count("an alert could not be sent") == 2


def test_a_missing_file_of_certificates_is_named(mailbox):
    message = email.message_from_string("Subject: x\nFrom: a@b\nTo: c@d\n\nx", policy=email.policy.default)
    given = AlertsSettings(smtp=mailbox().place, smtp_ca="/nowhere/ca.pem")
    with pytest.raises(NotSent, match=r"/nowhere/ca\.pem"):
        send_mail(given, message)


def test_no_fault_of_sending_leaves_a_message_unsettled_or_ends_the_task(archive, monkeypatch, caplog):
    """Whatever it is: here one that nobody has thought of."""
    monkeypatch.setattr("tamias.features.alerts.messages.post", lambda *_: {}["no such key"])
    monkeypatch.setattr("tamias.features.alerts.messages._ROUND_SECONDS", 0.05)

    async def run():
        with closing(SessionPool(archive.database, archive.data, Settings(), 1)) as pool:
            task = asyncio.create_task(AlertSender(pool, archive.data, settings(), allow_private=True).run())
            while "could not be sent" not in caplog.text and not task.done():  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.3)
            ended = task.done()
            task.cancel()
            await asyncio.wait([task])
            return ended

    assert not asyncio.run(asyncio.wait_for(run(), 30))
    [(trouble,)] = archive.rows("SELECT trouble FROM tamias.alert_message")
    assert trouble == "KeyError"


def test_a_task_that_failed_keeps_nothing_else_from_ending(caplog):
    async def fail():
        raise ValueError("no such thing")

    async def run():
        tasks = [asyncio.create_task(fail()), asyncio.create_task(asyncio.sleep(60))]
        await asyncio.sleep(0)
        await _end(*tasks)
        return [task.done() for task in tasks]

    assert asyncio.run(run()) == [True, True]
    assert not unsaid(caplog.text)


def test_recipients_that_the_mail_server_refuses_are_logged(archive, mailbox, certificate, caplog):
    mails = mailbox(refused="b@example.org")
    given = settings(
        mail_to=("a@example.org", "b@example.org"), smtp=mails.place, smtp_ca=str(certificate[0]), webhook=""
    )
    look(archive.session, archive.data, given, pause_ms=0)
    (claimed,) = claim(archive.session)
    sender = AlertSender(None, archive.data, given, allow_private=True)
    assert sender._attempt(claimed) is None
    assert len(mails.mails) == 1
    assert not unsaid(caplog.text, "example.org", "550")
