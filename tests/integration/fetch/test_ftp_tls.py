"""TLS with FTP servers: asked for by ftps, taken where ftp servers offer it, missed where they do not."""

import pytest
from loopback_ftp import Session, Site

from tamias.model.capture import Outcome


def test_ftps_is_encrypted_from_the_first_byte(tls_script, certificate):
    tls_script.scheme, tls_script.implicit = "ftps", True
    tls_script.sends("RETR", b"here")
    capture = tls_script.fetch("/a", settings={"ca_file": str(certificate[0])})
    assert (capture.outcome, capture.body.data) == (Outcome.OK, b"here")
    assert "PROT P" in tls_script.commands


def test_a_certificate_that_nobody_vouches_for_is_refused_for_ftps(tls_script):
    tls_script.scheme, tls_script.implicit = "ftps", True
    capture = tls_script.fetch("/a")
    assert (capture.outcome, capture.retry) == (Outcome.FAILED, False)
    assert "TLS certificate of 127.0.0.1 refused" in capture.reason
    assert tls_script.commands == []


def test_a_server_that_offers_tls_is_taken_at_its_word(tls_script):
    tls_script.replies["AUTH"] = Session.accept_tls
    tls_script.sends("RETR", b"here")
    assert tls_script.fetch("/a").body.data == b"here"
    assert tls_script.verbs()[0] == "AUTH"
    assert "PROT P" in tls_script.commands


def test_a_server_without_tls_is_asked_in_the_clear(script):
    script.sends("RETR", b"here")
    assert script.fetch("/a").body.data == b"here"


def test_a_server_whose_tls_comes_to_nothing_is_asked_in_the_clear(script):
    async def pretend(session):
        session.writer.write(b"234 go\r\n")
        await session.reader.read(1)
        session.writer.write(b"this is no TLS at all\r\n")
        session.writer.close()

    script.replies["AUTH"] = pretend
    script.sends("RETR", b"here")
    assert script.fetch("/a").body.data == b"here"


def test_a_server_that_does_not_protect_data_is_asked_in_the_clear(tls_script):
    async def refuse_protected(session):
        if session.protected:
            session.writer.write(b"522 no session was reused\r\n")
        else:
            await session.send(b"here", b"226 done\r\n")

    tls_script.replies |= {"AUTH": Session.accept_tls, "RETR": refuse_protected}
    assert tls_script.fetch("/a").body.data == b"here"


@pytest.fixture
def secured_site(tree, tmp_path, certificate):
    pytest.importorskip("OpenSSL", reason="pyOpenSSL, which pyftpdlib needs for TLS, is not installed")
    from pyftpdlib.handlers import TLS_FTPHandler

    made, key = map(str, certificate)
    demands = {"certfile": made, "keyfile": key, "tls_control_required": True, "tls_data_required": True}
    site = Site(tree, tmp_path / "spool", TLS_FTPHandler, **demands)
    yield site
    site.close()


@pytest.mark.parametrize(("path", "size"), [("/void.ttl", 14), ("/dumps/2024/all.nq", 2_600_000)])
def test_a_server_that_insists_on_tls_is_satisfied(secured_site, path, size):
    assert secured_site.fetch(path).body.size == size


def test_the_list_of_a_server_that_insists_on_tls_is_read(secured_site):
    assert len(secured_site.fetch("/dumps/").body.data.splitlines()) == 2
