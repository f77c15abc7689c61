"""Events of the archive, numbered: stored in the database, streamed to clients, sent to webhooks."""
