"""Webhooks: who wants to be told of events is, signed and in order, until it worked."""
