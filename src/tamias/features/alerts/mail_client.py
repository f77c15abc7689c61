"""Sends one mail through the mail server that the operator set."""

import os
import smtplib
import ssl
from email.message import EmailMessage
from pathlib import Path
from typing import Literal

import msgspec

from tamias.model.errors import ConfigError, TamiasError

SECONDS = 30
PASSWORD_VARIABLE = "TAMIAS_SMTP_PASSWORD"  # noqa: S105 (a name)
Tls = Literal["starttls", "tls", "none"]


class NotSent(TamiasError):
    """The mail server did not take it."""

    retry_can_help = True


class MailServer(msgspec.Struct, frozen=True, kw_only=True):
    """The address and login of the mail server."""

    host: str
    port: int
    tls: Tls = "starttls"
    user: str = ""
    ca_file: str | None = None
    """The certificates to trust instead of the system's."""


def send_mail(server: MailServer, message: EmailMessage, password: str | None = None) -> dict[str, str]:
    """Sends it, over TLS unless the operator said otherwise. Raises `NotSent`, without any password.

    Returns the recipients that the server refused, where it took the mail for others, and its answers.
    """
    context = _context(server)
    try:
        with _connected(server, context) as client:
            if server.tls == "starttls":
                client.starttls(context=context)
            if server.user:
                client.login(server.user, password or "")
            refused = client.send_message(message)
    except smtplib.SMTPResponseException as error:
        answer = _answer(error.smtp_code, error.smtp_error)
        raise NotSent(f"{server.host}:{server.port} answered {answer}") from None
    except (smtplib.SMTPException, OSError) as error:
        raise NotSent(f"{server.host}:{server.port}: {type(error).__name__} {error}"[:300]) from None
    except UnicodeError:  # its text has a part of what could not be encoded
        what = "the user, the password or an address has characters other than ASCII"
        raise NotSent(f"{server.host}:{server.port}: {what}, which cannot be sent") from None
    return {address: _answer(*answer) for address, answer in refused.items()}


def smtp_password() -> str | None:
    """Return the password from the environment, or from the file that the variable with `_FILE` names."""
    if (password := os.environ.get(PASSWORD_VARIABLE)) is not None:
        return password
    place = os.environ.get(f"{PASSWORD_VARIABLE}_FILE")
    if not place:
        return None
    try:
        return Path(place).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the file that {PASSWORD_VARIABLE}_FILE names cannot be read: {place}") from error


def _answer(code: int, text: str | bytes) -> str:
    return f"{code} {text if isinstance(text, str) else text.decode('utf-8', 'replace')}"[:200]


def _context(server: MailServer) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=server.ca_file)
    except OSError as error:
        place = server.ca_file or "of the system"
        raise NotSent(f"the file of certificates {place} cannot be used: {error}"[:300]) from None


def _connected(server: MailServer, context: ssl.SSLContext) -> smtplib.SMTP:
    if server.tls == "tls":
        return smtplib.SMTP_SSL(server.host, server.port, timeout=SECONDS, context=context)
    return smtplib.SMTP(server.host, server.port, timeout=SECONDS)
