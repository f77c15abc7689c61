"""The embedded PostgreSQL server: its programs, cluster, account, login, and the keeper that owns it."""
