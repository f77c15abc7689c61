"""The settings of proofs."""

from collections.abc import Iterator
from typing import Annotated

from tamias.settings import FeatureSettings, about


class ProofSettings(FeatureSettings, frozen=True, kw_only=True):
    """Settings of proofs: who gives timestamps."""

    tsa: Annotated[
        str, about("address of a timestamp server (RFC 3161), which stamps each day; empty: none")
    ] = ""

    def refused(self) -> Iterator[tuple[str, str]]:
        """Yield settings that no type refuses, with what they must be."""
        if self.tsa and not self.tsa.startswith(("http://", "https://")):
            yield "tsa", f"must be an address that begins with http:// or https://, not '{self.tsa}'"
