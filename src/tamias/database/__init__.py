"""The database that is simply there: PostgreSQL, embedded or by URL.

Binaries, the keeper that owns the embedded server, connections, time, migrations, named SQL.
"""
