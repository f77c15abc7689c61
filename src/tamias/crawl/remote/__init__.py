"""Workers without a database: `store` is what a worker stands on, `client` and `channel` reach the service.

`committer` is the other end, which the frontier service runs; `wire` has the messages between the two.
"""
