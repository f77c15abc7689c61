"""Alerts: what needs attention is sent by mail or to a webhook, once, and summed up in a digest."""

from tamias.plugins import Feature

FEATURE = Feature(
    name="alerts",
    about="mails and webhooks about what needs attention",
    module=__name__,
    requires=("service",),
    tables=("alert", "alert_message", "alert_round"),
    schema="schema.sql",
    settings="tamias.features.alerts.settings:AlertsSettings",
    tasks={"alerts": "tamias.features.alerts.sender:send_alerts"},
    metrics={"alerts": "tamias.features.alerts.messages:attention_metric"},
)
