"""Sends one mail through the mail server that the operator set."""

import smtplib
import ssl
from email.message import EmailMessage

from tamias.features.alerts.settings import AlertsSettings
from tamias.model.errors import ConfigError, TamiasError

SECONDS = 30
PASSWORD_VARIABLE = "TAMIAS_SMTP_PASSWORD"  # noqa: S105 (a name)


class NotSent(TamiasError):
    """The mail server did not take it."""

    retry_can_help = True


def mail_place(settings: AlertsSettings) -> tuple[str, int]:
    """Return the host and the port of the mail server. Raises `ConfigError`."""
    host, colon, port = settings.smtp.rpartition(":")
    if not colon or not host or not port.isdigit():
        raise ConfigError(f"alerts.smtp must be HOST:PORT, not '{settings.smtp}'")
    return host.strip("[]"), int(port)


def send_mail(settings: AlertsSettings, message: EmailMessage, password: str | None = None) -> dict[str, str]:
    """Sends it, over TLS unless the operator said otherwise. Raises `NotSent`, without any password.

    Returns the recipients that the server refused, where it took the mail for others, and its answers.
    """
    place = mail_place(settings)
    server = "{}:{}".format(*place)
    try:
        context = ssl.create_default_context(cafile=settings.smtp_ca or None)
    except OSError as error:
        file = settings.smtp_ca or "of the system"
        raise NotSent(f"the file of certificates {file} cannot be used: {error}"[:300]) from None
    try:
        with (
            smtplib.SMTP_SSL(*place, timeout=SECONDS, context=context)
            if settings.smtp_tls == "tls"
            else smtplib.SMTP(*place, timeout=SECONDS)
        ) as client:
            if settings.smtp_tls == "starttls":
                client.starttls(context=context)
            if settings.smtp_user:
                client.login(settings.smtp_user, password or "")
            refused = client.send_message(message)
    except smtplib.SMTPResponseException as error:
        raise NotSent(f"{server} answered {_answer(error.smtp_code, error.smtp_error)}") from None
    except (smtplib.SMTPException, OSError) as error:
        raise NotSent(f"{server}: {type(error).__name__} {error}"[:300]) from None
    except UnicodeError:  # its text has a part of what could not be encoded
        what = "the user, the password or an address has characters other than ASCII"
        raise NotSent(f"{server}: {what}, which cannot be sent") from None
    return {address: _answer(*answer) for address, answer in refused.items()}


def _answer(code: int, text: str | bytes) -> str:
    return f"{code} {text if isinstance(text, str) else text.decode('utf-8', 'replace')}"[:200]
