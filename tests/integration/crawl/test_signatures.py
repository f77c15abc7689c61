"""Requests that a crawl signs, verified by the library http-message-signatures."""

import json
import re
from base64 import b64decode, urlsafe_b64decode
from types import SimpleNamespace

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from http_message_signatures import (
    HTTPMessageVerifier,
    HTTPSignatureKeyResolver,
    InvalidSignature,
    algorithms,
)

from tests.ports import free_port

AGENT = "https://crawler.example"
DIRECTORY = "/.well-known/http-message-signatures-directory"
PAGE = {"Content-Type": "text/turtle"}


class Directory(HTTPSignatureKeyResolver):
    """The keys of a JSON Web Key Set by their identifiers."""

    def __init__(self, directory):
        self.keys = {key["kid"]: key for key in directory["keys"]}

    def resolve_public_key(self, key_id):
        key = self.keys[key_id]
        assert (key["kty"], key["crv"]) == ("OKP", "Ed25519")
        return Ed25519PublicKey.from_public_bytes(urlsafe_b64decode(key["x"] + "=="))


def verified(directory, message):
    """The components that the signature of a message covers; raises `InvalidSignature` for a wrong one."""
    verifier = HTTPMessageVerifier(signature_algorithm=algorithms.ED25519, key_resolver=Directory(directory))
    (result,) = verifier.verify(message)
    return set(result.covered_components), result.parameters


@pytest.fixture
def key(tamias, tmp_path):
    """A key that the command made, and that the settings name; its directory is returned."""
    file = tmp_path / "key.pem"
    made = tamias.run("key make", str(file))
    assert made.returncode == 0, made.stderr
    assert file.stat().st_mode & 0o777 == 0o600
    tamias.env |= {"TAMIAS_SIGNATURES__KEY": str(file), "TAMIAS_SIGNATURES__AGENT": AGENT}
    shown = tamias.run("key show", str(file))
    assert shown.returncode == 0, shown.stderr
    return json.loads(shown.stdout)


@pytest.fixture
def seen(site):
    """The requests of a crawl; `/` and what `asked` has answer as given there."""
    requests, answers = [], {}

    def serve(handler):
        headers = {name.lower(): value for name, value in handler.headers.items()}
        requests.append(SimpleNamespace(method="GET", url=site.url(handler.path), headers=headers))
        site.pages[handler.path + " body"] = b"<> <#is> <#here> ; <#to> </next> ."
        give = answers.get(handler.path)
        if give is None or not give(handler):
            handler.send_response(200)
            body = b"" if handler.path == "/robots.txt" else b"<> <#is> <#here> ; <#to> </next> ."
            handler.send_header(
                "Content-Type", "text/plain" if handler.path == "/robots.txt" else "text/turtle"
            )
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)

    site.give = serve
    return SimpleNamespace(requests=requests, answers=answers)


def test_every_request_of_a_crawl_is_signed_for_its_host(tamias, site, key, seen):
    done = tamias.crawl(site.url("/"))
    assert done.returncode == 0, done.stderr
    assert {httpx.URL(each.url).path for each in seen.requests} >= {"/robots.txt", "/", "/next"}
    nonces = set()
    for request in seen.requests:
        assert request.headers["signature-agent"] == f'"{AGENT}"'
        components, parameters = verified(key, request)
        assert {'"@authority"', '"signature-agent"'} <= components
        assert parameters["tag"] == "web-bot-auth"
        assert parameters["expires"] > parameters["created"]
        nonces.add(parameters["nonce"])
        elsewhere = SimpleNamespace(**{**vars(request), "url": "http://other.example/"})
        with pytest.raises(InvalidSignature):
            verified(key, elsewhere)
    assert len(nonces) == len(seen.requests)


def test_nothing_is_signed_without_a_key(tamias, site, seen):
    assert tamias.crawl(site.url("/")).returncode == 0
    assert seen.requests
    assert not any(name.startswith("signature") for each in seen.requests for name in each.headers)


def test_a_challenged_host_gets_signatures_from_then_on(tamias, site, key, seen):
    tamias.env["TAMIAS_SIGNATURES__WHEN"] = "challenged"

    def challenge(handler):
        if handler.headers.get("Signature"):
            return False
        handler.send_response(403)
        handler.send_header("Accept-Signature", 'sig1=("@authority");tag="web-bot-auth"')
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return True

    seen.answers |= {"/": challenge, "/next": challenge}
    done = tamias.crawl(site.url("/"))
    assert done.returncode == 0, done.stderr
    signed = [(httpx.URL(each.url).path, "signature" in each.headers) for each in seen.requests]
    assert signed == [("/robots.txt", False), ("/", False), ("/", True), ("/next", True)]
    assert all(verified(key, each) for each in seen.requests if "signature" in each.headers)
    assert len(tamias.quads()) == 4


def test_a_refusal_without_a_challenge_is_not_asked_again(tamias, site, key, seen):
    tamias.env["TAMIAS_SIGNATURES__WHEN"] = "challenged"

    def refuse(handler):
        handler.send_response(403)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return True

    seen.answers["/"] = refuse
    tamias.crawl(site.url("/"))
    assert [httpx.URL(each.url).path for each in seen.requests] == ["/robots.txt", "/"]
    assert not any("signature" in each.headers for each in seen.requests)


def test_the_service_serves_the_directory_and_signs_it(tamias, key, tmp_path):
    tamias.env["TAMIAS_SERVE__PUBLIC"] = "false"
    port = free_port()
    service = tamias.start("serve", "--port", str(port))
    said = next(line for line in service.stderr if "serving at" in line or "tamias:" in line)
    assert "serving at" in said, said
    address = f"http://127.0.0.1:{port}"
    answer = httpx.get(address + DIRECTORY)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/http-message-signatures-directory+json"
    assert answer.json() == key
    (parameters,) = re.findall(r"sig1=(.*)", answer.headers["signature-input"])
    (signature,) = re.findall(r"sig1=:(.*):", answer.headers["signature"])
    signed = f'"@authority";req: 127.0.0.1:{port}\n"@signature-params": {parameters}'
    Directory(key).resolve_public_key(key["keys"][0]["kid"]).verify(b64decode(signature), signed.encode())
    assert 'tag="http-message-signatures-directory"' in parameters
    assert httpx.get(address + "/api/v1/resources").status_code == 401
    service.terminate()
    service.wait(timeout=60)


@pytest.mark.parametrize(
    ("content", "mode", "named"),
    [("no key at all", 0o600, "not an Ed25519 private key"), (None, 0o644, "chmod 600")],
)
def test_a_key_that_cannot_be_used_stops_the_crawl_before_the_first_request(
    tamias, site, key, tmp_path, content, mode, named
):
    file = tmp_path / "key.pem"
    if content is not None:
        file.write_text(content)
    file.chmod(mode)
    done = tamias.crawl(site.url("/"))
    assert done.returncode == 4, done.stderr
    assert named in done.stderr
    assert site.log == []


def test_a_key_is_never_overwritten(tamias, tmp_path, key):
    before = (tmp_path / "key.pem").read_bytes()
    done = tamias.run("key make", str(tmp_path / "key.pem"))
    assert done.returncode == 2, done.stderr
    assert "exists" in done.stderr
    assert (tmp_path / "key.pem").read_bytes() == before
