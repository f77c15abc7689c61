"""An authority of our own, and certificates that it should not have given: made by openssl, for a day."""

import shutil
import ssl
import subprocess
from pathlib import Path

from tamias.model.errors import TamiasError

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Authority:
    """Signs what it is told to. Its own certificate is the file that a crawler is told to trust."""

    def __init__(self, folder: Path) -> None:
        if shutil.which("openssl") is None:
            raise TamiasError("the hostile web needs openssl to make its certificates: install it")
        self._folder = folder
        self.file = folder / "authority.pem"
        self._key = folder / "authority.key"
        _openssl(
            "req",
            "-x509",
            *_KEY,
            "-days",
            "1",
            "-subj",
            "/CN=hostile",
            "-keyout",
            self._key,
            "-out",
            self.file,
        )

    def signed(self, name: str, days: int = 1) -> ssl.SSLContext:
        """For that name; with days below zero it has expired."""
        key, asked, made = (self._folder / f"{name}{suffix}" for suffix in (".key", ".csr", ".pem"))
        subject = ("-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}")
        _openssl("req", *_KEY, *subject, "-keyout", key, "-out", asked)
        by = ("-CA", self.file, "-CAkey", self._key, "-CAcreateserial", "-copy_extensions", "copy")
        _openssl("x509", "-req", "-in", asked, *by, "-days", str(days), "-out", made)
        return _context(made, key)

    def self_signed(self, name: str) -> ssl.SSLContext:
        """Signed by nobody else."""
        key, made = self._folder / "self.key", self._folder / "self.pem"
        subject = ("-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}")
        _openssl("req", "-x509", *_KEY, "-days", "1", *subject, "-keyout", key, "-out", made)
        return _context(made, key)


def _context(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return context


def _openssl(*words: str | Path) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True)
