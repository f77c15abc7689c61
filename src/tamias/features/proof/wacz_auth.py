"""Signatures of WACZ files by the specification wacz-auth 0.1.0: by a key alone, or by that of a domain."""

from base64 import b64encode
from hashlib import sha256
from pathlib import Path

from Cryptodome.Hash import SHA256
from Cryptodome.PublicKey import ECC
from Cryptodome.Signature import DSS

from tamias import __version__
from tamias.features.proof.settings import ProofSettings
from tamias.features.proof.timestamps import fetch_timestamp
from tamias.features.warc_exports.wacz import SignDigest
from tamias.model.errors import ConfigError
from tamias.model.private_file import read_private_file
from tamias.settings import Settings

_MOST_BYTES = 64 << 10
_END = b"-----END CERTIFICATE-----"


def make_signer(settings: Settings) -> SignDigest | None:
    """Return what signs a WACZ; None where no key is set. Raises `ConfigError` for a key of another kind."""
    own = settings.of_feature("proof", ProofSettings)
    if not own.key:
        return None
    key = _ec_key(own.key, read_private_file(own.key, "key", _MOST_BYTES))
    if not key.has_private():
        raise ConfigError(f"{own.key} has no private key")
    identity = {"publicKey": _base64(key.public_key().export_key(format="DER"))}
    if own.certificate:
        chain, stamps = (_read(name) for name in (own.certificate, own.tsa_certificate))
        if _ec_key(own.certificate, chain).public_key() != key.public_key():
            raise ConfigError(f"the first certificate in {own.certificate} is not for the key {own.key}")
        identity = {"domain": own.domain, "domainCert": chain.decode(), "timestampCert": stamps.decode()}

    def sign(digest: str, created: str) -> dict[str, str]:
        signature = _base64(DSS.new(key, "fips-186-3", encoding="der").sign(SHA256.new(digest.encode())))
        about = {"hash": digest, "created": created, "software": f"Tamias {__version__}", "version": "0.1.0"}
        signed = {**about, "signature": signature, **identity}
        if own.certificate:
            root, private = sha256(signature.encode()).digest(), settings.permit.allow_private
            signed["timeSignature"] = _base64(fetch_timestamp(own.tsa, root, allow_private=private)[0])
        return signed

    return sign


def _read(name: str) -> bytes:
    try:
        with Path(name).expanduser().open("rb") as file:
            return file.read(_MOST_BYTES)
    except OSError as error:
        raise ConfigError(f"cannot read the certificate {name}: {error.strerror}") from None


def _ec_key(name: str, pem: bytes) -> ECC.EccKey:
    first, end, _ = pem.partition(_END)
    try:
        key = ECC.import_key(first + end)
    except (ValueError, IndexError, TypeError):
        key = None
    if key is None or not key.curve.startswith("NIST"):
        raise ConfigError(f"{name} is not for an ECDSA key in PEM, such as one of the curve prime256v1")
    return key


def _base64(content: bytes) -> str:
    return b64encode(content).decode()
