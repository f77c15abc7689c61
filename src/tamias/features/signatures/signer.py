"""Signs requests as Web Bot Auth asks for it: HTTP message signatures (RFC 9421) with an Ed25519 key."""

import os
import time
from base64 import b64encode
from collections.abc import Mapping

from tamias.features.signatures.keys import SigningKey
from tamias.features.signatures.settings import SignaturesSettings
from tamias.model.capture import Hop
from tamias.model.url import authority

REQUEST_TAG = "web-bot-auth"
DIRECTORY_TAG = "http-message-signatures-directory"
_VALID_SECONDS = 300
_NONCE_BYTES = 32
_CHALLENGES = frozenset({401, 403, 429})
_MOST_HOSTS = 100_000


class Signer:
    """Signs the requests of one fetcher (protocols.SignRequests)."""

    def __init__(self, key: SigningKey, settings: SignaturesSettings) -> None:
        self._key = key
        self._agent = f'"{settings.agent.rstrip("/")}"'
        self._always = settings.when == "always"
        self._challenged: dict[str, None] = {}

    def headers(self, url: str) -> list[bytes]:
        """Return the headers of the signature for a request; none where it is not signed."""
        site = authority(url).partition("://")[2]
        if not (self._always or site in self._challenged):
            return []
        signed = {'"@authority"': site, '"signature-agent"': self._agent}
        lines = signature_headers(self._key, signed, REQUEST_TAG)
        lines["Signature-Agent"] = self._agent
        return [f"{name}: {value}".encode("ascii") for name, value in lines.items()]

    def take_challenge(self, hop: Hop) -> bool:
        """Return whether a response asks for a signature that its request lacked."""
        site = authority(hop.url).partition("://")[2]
        if self._always or site in self._challenged or hop.status not in _CHALLENGES:
            return False
        if hop.header("accept-signature") is None and hop.header("cf-mitigated") is None:
            return False
        if len(self._challenged) >= _MOST_HOSTS:
            del self._challenged[next(iter(self._challenged))]
        self._challenged[site] = None
        return True


def signature_headers(key: SigningKey, signed: Mapping[str, str], tag: str) -> dict[str, str]:
    """Sign components, given by their identifiers; return the headers with the signature."""
    created = int(time.time())
    nonce = b64encode(os.urandom(_NONCE_BYTES)).decode()
    parameters = (
        f"({' '.join(signed)});created={created};expires={created + _VALID_SECONDS}"
        f';keyid="{key.public.kid}";alg="ed25519";nonce="{nonce}";tag="{tag}"'
    )
    base = "\n".join(
        [*(f"{name}: {value}" for name, value in signed.items()), f'"@signature-params": {parameters}']
    )
    signature = b64encode(key.sign(base.encode("ascii"))).decode()
    return {"Signature-Input": f"sig1={parameters}", "Signature": f"sig1=:{signature}:"}
