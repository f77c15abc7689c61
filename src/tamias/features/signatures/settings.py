"""The settings of signatures. Nothing is loaded for them where no key is set."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from tamias.settings import FeatureSettings, Settings, about

if TYPE_CHECKING:
    from tamias.protocols import SignRequests

_SITE = re.compile(r"https://[a-z0-9.-]+(:[0-9]+)?/?")


class SignaturesSettings(FeatureSettings, frozen=True, kw_only=True):
    """Settings of signatures: the key, where its directory is, and which requests are signed."""

    key: Annotated[str, about("file with the key that `tamias key make` wrote; empty: nothing is signed")] = (
        ""
    )
    agent: Annotated[
        str, about("https address of the site with the key directory, sent as Signature-Agent")
    ] = ""
    when: Annotated[
        Literal["always", "challenged"],
        about("sign all requests, or those to a host once it has asked for a signature"),
    ] = "always"

    def refused(self) -> Iterator[tuple[str, str]]:
        """Yield settings that no type refuses, with what they must be."""
        if self.key and not self.agent:
            yield "agent", "is needed with signatures.key: the site where others find the key directory"
        if self.agent and not _SITE.fullmatch(self.agent):
            yield "agent", f"must be an address such as https://crawler.example, not '{self.agent}'"


def make_signer(settings: Settings) -> "SignRequests | None":
    """Return what signs requests; None if no key is set."""
    own = settings.of_feature("signatures", SignaturesSettings)
    if not own.key:
        return None
    from tamias.features.signatures.keys import read_key
    from tamias.features.signatures.signer import Signer

    return Signer(read_key(own.key), own)
