"""Ed25519 keys: made, read from a file, and described as JSON Web Keys (RFC 7517, RFC 8037, RFC 7638)."""

import hashlib
import os
from base64 import urlsafe_b64encode
from pathlib import Path

import msgspec
from Cryptodome.PublicKey import ECC
from Cryptodome.Signature import eddsa

from tamias.model.errors import ConfigError, UsageError
from tamias.model.private_file import read_private_file

DIRECTORY_PATH = "/.well-known/http-message-signatures-directory"
DIRECTORY_TYPE = "application/http-message-signatures-directory+json"
_CURVE = "Ed25519"
_MOST_BYTES = 16 << 10


class PublicKey(msgspec.Struct, frozen=True, kw_only=True):
    """The public part of a key, as the directory lists it."""

    kty: str = "OKP"
    crv: str = _CURVE
    x: str
    kid: str
    use: str = "sig"


class SigningKey:
    """A private key, which signs."""

    def __init__(self, key: ECC.EccKey) -> None:
        self._signer = eddsa.new(key, "rfc8032")
        x = _base64(key.public_key().export_key(format="raw"))
        thumbprint = hashlib.sha256(b'{"crv":"%s","kty":"OKP","x":"%s"}' % (_CURVE.encode(), x.encode()))
        self.public = PublicKey(x=x, kid=_base64(thumbprint.digest()))

    def sign(self, content: bytes) -> bytes:
        """Return the signature of some bytes."""
        return self._signer.sign(content)

    def directory(self) -> bytes:
        """Return the directory that lists this key, as JSON."""
        return msgspec.json.encode({"keys": [self.public]})


def make_key(file: Path) -> SigningKey:
    """Write a new private key to a file that only its owner can read."""
    key = ECC.generate(curve=_CURVE)
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise UsageError(f"{file} exists; a key is never overwritten: name another file") from None
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}") from None
    with os.fdopen(handle, "w") as out:
        out.write(key.export_key(format="PEM") + "\n")
    return SigningKey(key)


def read_key(name: str | Path) -> SigningKey:
    """Read a private key. Raises `ConfigError` for a file that has none or that others can read."""
    pem = read_private_file(name, "key", _MOST_BYTES)
    try:
        key = ECC.import_key(pem)
    except (ValueError, IndexError, TypeError):
        key = None
    if key is None or key.curve != _CURVE or not key.has_private():
        raise ConfigError(f"{name} is not an Ed25519 private key in PEM; 'tamias key make' writes one")
    return SigningKey(key)


def _base64(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()
