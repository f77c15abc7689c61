"""A web on the loopback addresses, plain or with TLS."""

import shutil
import ssl
import subprocess

import pytest
from loopback_web import Web


@pytest.fixture
def web(tmp_path):
    found = Web(tmp_path / "spool")
    yield found
    found.socket.close()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """A self-signed certificate for 127.0.0.1 and its key, as paths."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("certificate")
    key, made = folder / "key.pem", folder / "certificate.pem"
    asked = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=loopback -addext subjectAltName=IP:127.0.0.1"
    subprocess.run(
        ["openssl", *asked.split(), "-keyout", key, "-out", made],
        check=True,
        capture_output=True,
    )
    return made, key


@pytest.fixture
def tls_web(web, certificate):
    web.tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    web.tls.load_cert_chain(*certificate)
    return web
