"""Alerts: what needs attention is sent by mail or to a webhook, once, and summed up in a digest."""
