"""The scope that each gRPC call needs, for named tokens."""

from typing import Final, Literal

from tamias.access.tokens import SCOPES, AccessScope, Caller
from tamias.features.remote_workers.grpc import messages

EVERYBODY: Final = "everybody"
NOBODY = Caller("nobody", frozenset())
ANYBODY = Caller("anybody", frozenset(SCOPES))
"""Who calls a service that has no token."""

_BY_SCOPE: dict[AccessScope, tuple[str, ...]] = {
    "read": (
        *("ListNodes", "ListCrawls", "ListQueues", "GetStats", "GetActive", "GetURLStatus", "CountURLs"),
        "ListURLs",
    ),
    "add": ("PutURLs", "PutDiscovered"),
    "crawl": ("GetURLs", "BlockQueueUntil", "SetActive", "SetDelay", "SetCrawlLimit"),
    "admin": ("DeleteCrawl", "DeleteQueue", "PurgeURLs", "SetLogLevel"),
}
_WORKERS = (
    *("Hello", "Renew", "Deliver", "Mourn", "GetRobots", "PutRobots", "GetContexts", "IsSiteOpen"),
    *("OpenSite", "PutItems", "PutLinks"),
)

CALL_SCOPES: dict[str, AccessScope | Literal["everybody"]] = {
    **{f"/{messages.FRONTIER}/{name}": scope for scope, names in _BY_SCOPE.items() for name in names},
    **{f"/{messages.WORKERS}/{name}": "crawl" for name in _WORKERS},
    **{f"/{messages.HEALTH}/{name}": EVERYBODY for name in ("Check", "Watch")},
    **{f"/{name}/ServerReflectionInfo": "read" for name in (messages.REFLECTION, messages.REFLECTION_ALPHA)},
}
"""A call that is not named here is refused."""

NOTED_CALLS = frozenset(
    f"/{messages.FRONTIER}/{name}"
    for name in (*_BY_SCOPE["admin"], "BlockQueueUntil", "SetActive", "SetDelay", "SetCrawlLimit")
)
"""Those in the audit log. What crawlers and workers put and get, many times a second, is not."""
