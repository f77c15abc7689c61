"""The settings of alerts."""

from collections.abc import Iterator
from typing import Annotated, Literal

from tamias.settings import FeatureSettings, about

AlertKind = Literal[
    "gone", "failing", "suspicious", "disk", "catalogue",
    "wall", "blocked", "harvest", "lost", "licence", "columns",
]  # fmt: skip


class AlertsSettings(FeatureSettings, frozen=True, kw_only=True):
    """Settings of alerts: who gets them, when, and what they are about."""

    mail_to: Annotated[tuple[str, ...], about("e-mail addresses that get alerts")] = ()
    mail_from: Annotated[str, about("the sender of these mails")] = "tamias@localhost"
    smtp: Annotated[str, about("HOST:PORT of the mail server; the password is in TAMIAS_SMTP_PASSWORD")] = ""
    smtp_user: Annotated[str, about("user at the mail server; empty: no login")] = ""
    smtp_tls: Annotated[
        Literal["starttls", "tls", "none"], about("how the connection to the mail server is encrypted")
    ] = "starttls"
    smtp_ca: Annotated[str, about("file of certificates to trust for it; empty: the system's")] = ""
    webhook: Annotated[str, about("URL that gets alerts as JSON")] = ""
    kinds: Annotated[
        tuple[AlertKind, ...], about("kinds of alerts that are sent; empty: all; the feed has all")
    ] = ()
    digest: Annotated[float, about("hours between digests of all that needs attention; 0: none", ge=0)] = 24.0
    quiet: Annotated[
        str,
        about("hours of the day, UTC, without alerts, such as 22-7", pattern=r"^([0-9]{1,2}-[0-9]{1,2})?$"),
    ] = ""
    failing: Annotated[float, about("days without a usable answer before a resource is reported", ge=0)] = 3.0
    disk: Annotated[float, about("megabytes; less free disk space is reported", ge=0)] = 1000.0
    catalogue: Annotated[
        float, about("minutes that the catalogue may be behind before it is reported", ge=0)
    ] = 60.0

    lost: Annotated[
        int, about("datasets; a portal that loses as many between two harvests is reported", ge=1)
    ] = 100
    lost_percent: Annotated[float, about("the same as a share of its datasets, in percent", gt=0, le=100)] = (
        10.0
    )

    def refused(self) -> Iterator[tuple[str, str]]:
        """Yield settings that no type refuses, with what they must be."""
        if self.mail_to and not self.smtp:
            yield "mail_to", "needs alerts.smtp, HOST:PORT of the mail server"
        if self.quiet:
            begin, end = (int(each) for each in self.quiet.split("-"))
            if max(begin, end) > 24 or begin % 24 == end % 24:
                wanted = "must be two different hours from 0 to 24, such as 22-7, and leave some of the day"
                yield "quiet", f"{wanted}, not '{self.quiet}'"
