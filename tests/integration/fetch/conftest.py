"""A web on the loopback addresses, plain or with TLS."""

import shutil
import ssl
import subprocess

import pytest
from loopback_ftp import Script, Site
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


@pytest.fixture
def tree(tmp_path):
    """A folder three deep."""
    folder = tmp_path / "tree"
    (folder / "dumps" / "2024").mkdir(parents=True)
    (folder / "void.ttl").write_bytes(b"<a> <b> <c> .\n")
    (folder / "dumps" / "über uns.nt").write_bytes(b"")
    (folder / "dumps" / "2024" / "all.nq").write_bytes(b"<a:a> <b:b> <c:c> <g:g> .\n" * 100_000)
    return folder


@pytest.fixture
def site(tree, tmp_path):
    found = Site(tree, tmp_path / "spool")
    yield found
    found.close()


@pytest.fixture
def script(tmp_path):
    found = Script(tmp_path / "spool")
    yield found
    found.socket.close()


@pytest.fixture
def tls_script(script, certificate):
    script.tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    script.tls.load_cert_chain(*certificate)
    return script
