"""Alerts: what needs attention is sent by mail or to a webhook, once, and listed in a feed."""

from tamias.plugins import Feature

FEATURE = Feature(
    name="alerts",
    about="mails and webhooks about what needs attention",
    module=__name__,
    requires=("service", "dcat", "feeds"),
    tables=("alert", "alert_message", "alert_round"),
    schema="schema.sql",
    settings="tamias.features.alerts.settings:AlertsSettings",
    tasks={"alerts": "tamias.features.alerts.messages:send_alerts"},
    endpoints={"alerts": "tamias.features.alerts.changes:ENDPOINTS"},
    metrics={"alerts": "tamias.features.alerts.messages:attention_metric"},
)
