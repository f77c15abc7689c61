"""Alerts and rules at tools of others: aiosmtpd takes the mail, promtool checks the rules."""

import os
import shutil
import socket
import subprocess
from email.message import EmailMessage
from pathlib import Path

import pytest

from tamias.features.alerts.mail_client import send_mail
from tamias.features.alerts.settings import AlertsSettings

RULES = Path(__file__).resolve().parents[2] / "deploy" / "prometheus" / "tamias.rules.yaml"


@pytest.fixture
def needed():
    if not os.environ.get("TAMIAS_NIGHTLY"):
        pytest.skip("make nightly installs what this needs")


@pytest.mark.usefixtures("needed")
def test_promtool_finds_nothing_wrong_with_the_rules():
    promtool = shutil.which("promtool")
    assert promtool, "make nightly installs prometheus"
    done = subprocess.run([promtool, "check", "rules", RULES], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "9 rules found" in done.stdout


@pytest.mark.usefixtures("needed")
def test_aiosmtpd_takes_a_mail_after_starttls_and_login(tmp_path):
    import ssl

    from aiosmtpd.controller import Controller
    from aiosmtpd.handlers import Mailbox
    from aiosmtpd.smtp import SMTP, AuthResult

    make = (
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost"
    )
    alternative = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*make.split(), *alternative], cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    told = []

    def check(_server, _session, _envelope, _mechanism, login):
        told.append((login.login, login.password))
        return AuthResult(success=True)

    class Tls(Controller):
        def factory(self):
            return SMTP(
                self.handler,
                tls_context=context,
                require_starttls=True,
                auth_required=True,
                authenticator=check,
            )

    with socket.create_server(("127.0.0.1", 0)) as trial:
        port = trial.getsockname()[1]
    controller = Tls(Mailbox(tmp_path / "mail"), hostname="127.0.0.1", port=port)
    controller.start()
    try:
        message = EmailMessage()
        message["Subject"], message["From"], message["To"] = (
            "Tamias: gone 1",
            "a@example.org",
            "b@example.org",
        )
        message.set_content("é is gone.")
        certificate = str(tmp_path / "cert.pem")
        server = AlertsSettings(smtp=f"localhost:{port}", smtp_user="archive", smtp_ca=certificate)
        send_mail(server, message, "let-me-in")
    finally:
        controller.stop()
    (mail,) = (tmp_path / "mail" / "new").iterdir()
    assert b"Subject: Tamias: gone 1" in mail.read_bytes()
    assert told == [(b"archive", b"let-me-in")]
