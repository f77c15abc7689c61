"""Workers without a database: `store` is what a worker stands on, `client` and `channel` reach the service.

`committer` is the other end, which the frontier service runs; `wire` has the messages between the two.
"""

from tamias.plugins import Feature

FEATURE = Feature(
    name="remote_workers",
    about="workers without a database, which talk to a frontier service",
    module=__name__,
    remote_workers={"frontier": f"{__name__}.supervisor:run_workers"},
)
