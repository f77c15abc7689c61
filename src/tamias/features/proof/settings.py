"""The settings of proofs."""

from collections.abc import Iterator
from typing import Annotated

from tamias.settings import FeatureSettings, about


class ProofSettings(FeatureSettings, frozen=True, kw_only=True):
    """Settings of proofs: who gives timestamps, and what signs WACZ files."""

    tsa: Annotated[
        str, about("address of a timestamp server (RFC 3161), which stamps each day; empty: none")
    ] = ""
    key: Annotated[str, about("file with the ECDSA key that signs WACZ files, in PEM; empty: none")] = ""
    certificate: Annotated[
        str, about("file with the certificate of `proof.domain` for this key and its chain, in PEM")
    ] = ""
    domain: Annotated[str, about("host name that the certificate is for")] = ""
    tsa_certificate: Annotated[
        str, about("file with the certificate of the timestamp server and its chain, in PEM")
    ] = ""

    def refused(self) -> Iterator[tuple[str, str]]:
        """Yield settings that no type refuses, with what they must be."""
        if self.tsa and not self.tsa.startswith(("http://", "https://")):
            yield "tsa", f"must be an address that begins with http:// or https://, not '{self.tsa}'"
        if self.certificate:
            for name in ("key", "domain", "tsa", "tsa_certificate"):
                if not getattr(self, name):
                    yield name, "is needed with proof.certificate"
