"""Which variables of the environment are secrets, and the environment of processes that need none of them."""

import os

CREDENTIAL_PREFIX = "TAMIAS_CREDENTIAL_"
"""Variables that the credentials for sources name."""
_SECRET = ("TAMIAS_SECRET", "TAMIAS_TOKEN", "TAMIAS_SMTP_PASSWORD", CREDENTIAL_PREFIX)


def environment_without_secrets() -> dict[str, str]:
    """The environment for a child process that neither crawls nor serves."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_SECRET)}
