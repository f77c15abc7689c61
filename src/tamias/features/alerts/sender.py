"""Sends alerts beside the service; any number of instances share the work."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from email.message import EmailMessage
from email.utils import format_datetime, localtime
from functools import partial
from pathlib import Path

from tamias.features.alerts.mail_client import PASSWORD_VARIABLE, NotSent, mail_place, send_mail
from tamias.features.alerts.messages import (
    MAIL,
    ClaimedMessage,
    claim_message,
    look,
    settle_message,
)
from tamias.features.alerts.settings import AlertsSettings
from tamias.features.service.events.webhooks import post
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession, SessionPool
from tamias.model.errors import ConfigError, TamiasError
from tamias.permit.addresses import forbidden
from tamias.service_client import secret_text
from tamias.settings import Settings

_ROUND_SECONDS = 5.0
_log = logging.getLogger(__name__)


class AlertSender:
    """Runs until it is cancelled."""

    def __init__(
        self, pool: SessionPool, data: Path, settings: AlertsSettings, *, allow_private: bool
    ) -> None:
        """Raises `ConfigError` for settings of mail that cannot be used."""
        self._pool = pool
        self._data = data
        self._settings = settings
        self._forbidden: Callable[[str], str | None] = (lambda _: None) if allow_private else forbidden
        if settings.smtp:
            mail_place(settings)

    async def run(self) -> None:
        """Looks for what needs attention and sends what is due, again and again."""
        while True:
            try:
                await self._round()
            except (HttpProblem, TamiasError, OSError) as error:
                _log.warning("alerts wait: %s", error)
            except Exception:  # noqa: BLE001 (without this task nothing is ever reported again)
                _log.error("alerts wait for an error that was not expected", exc_info=True)
            await asyncio.sleep(_ROUND_SECONDS)

    async def _round(self) -> None:
        await self._pool.run(lambda db: look(db.session, self._data, self._settings))
        while claimed := await self._pool.run(lambda db: claim_message(db.session, self._settings)):
            trouble = await asyncio.to_thread(self._attempt, claimed)
            if trouble is not None:
                _log.warning("an alert could not be sent (%s): %s", claimed.target, trouble)
            await self._pool.run(partial(_settle, claimed=claimed, trouble=trouble))

    def _attempt(self, claimed: ClaimedMessage) -> str | None:
        try:
            return self._send(claimed)
        except Exception as error:  # noqa: BLE001 (a message that is not settled is tried for ever)
            return type(error).__name__  # its text may have a secret

    def _send(self, claimed: ClaimedMessage) -> str | None:
        """Send a message; return why it could not be sent, if so."""
        if claimed.target != MAIL:
            headers = {"webhook-id": claimed.message}
            posted = post(self._settings.webhook, claimed.body.encode(), headers, self._forbidden)
            return None if posted.is_taken else posted.trouble
        if not self._settings.smtp:
            return "alerts.smtp is not set"
        try:
            refused = send_mail(
                self._settings, _message(claimed, self._settings), secret_text(PASSWORD_VARIABLE)
            )
        except (NotSent, ConfigError) as error:
            return str(error)
        for address, answer in refused.items():
            _log.warning("the mail server refuses %s: %s", address, answer)
        return None


def send_alerts(pool: SessionPool, data: Path, settings: Settings) -> Coroutine[None, None, None]:
    """Make the task of a service. Raises `ConfigError` for settings of mail that cannot be used."""
    return AlertSender(
        pool, data, settings.of_feature("alerts", AlertsSettings), allow_private=settings.permit.allow_private
    ).run()


def _settle(db: ServiceSession, claimed: ClaimedMessage, trouble: str | None) -> None:
    settle_message(db.session, claimed, trouble)


def _message(claimed: ClaimedMessage, settings: AlertsSettings) -> EmailMessage:
    message = EmailMessage()
    message["Subject"] = " ".join(claimed.subject.split())
    message["From"] = settings.mail_from
    message["To"] = ", ".join(settings.mail_to)
    message["Date"] = format_datetime(localtime())
    # The same at every attempt, so that a mail server can drop a second copy.
    message["Message-ID"] = f"<{claimed.message}@tamias.invalid>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(claimed.body)
    return message
