"""The service behind nginx, by the configuration on the page of operations."""

import re
import shutil
import ssl
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.ports import free_port

PAGE = Path(__file__).resolve().parents[3] / "docs" / "operations.md"
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
NAME = "archive.example.org"


@pytest.mark.skipif(not (NGINX and shutil.which("openssl")), reason="nginx or openssl is not installed")
def test_the_pages_work_by_the_name_that_users_type(tamias, tmp_path):
    port, shown = free_port(), free_port()
    certificate, key = tmp_path / "archive.pem", tmp_path / "archive.key"
    asked = f"req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={NAME} -addext subjectAltName=DNS:{NAME}"
    subprocess.run(
        ["openssl", *asked.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True
    )
    (server,) = re.findall(r"```nginx\n(.*?)```", PAGE.read_text(), re.DOTALL)
    server = server.replace("443", f"127.0.0.1:{shown}").replace("127.0.0.1:8080", f"127.0.0.1:{port}")
    server = server.replace("/etc/ssl", str(tmp_path))
    temporary = "".join(
        f"{each}_temp_path {tmp_path}/{each};"
        for each in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (tmp_path / "nginx.conf").write_text(
        f"daemon off; pid {tmp_path}/pid; error_log stderr; user root;"
        f" events {{}} http {{ access_log off; {temporary} {server} }}"
    )
    tamias.env["TAMIAS_SERVE__ADDRESS"] = f"https://{NAME}:{shown}"
    tamias.env["TAMIAS_SECRET"] = "open sesame"
    serving = tamias.start("serve", "--port", str(port), "--no-crawl")
    proxy = subprocess.Popen([NGINX, "-c", str(tmp_path / "nginx.conf"), "-e", "stderr"])
    trusted = ssl.create_default_context(cafile=certificate)
    try:
        with httpx.Client(verify=trusted, base_url=f"https://127.0.0.1:{shown}") as client:

            def ask(path, name=f"{NAME}:{shown}", **words):
                return client.request(
                    words.pop("method", "GET"), path, headers={"Host": name},
                    extensions={"sni_hostname": NAME}, **words,
                )  # fmt: skip

            def is_up():
                try:
                    return ask("/healthz").status_code == 200
                except httpx.TransportError:
                    return False

            tamias.wait_until(is_up)
            page = ask("/")
            assert (page.status_code, "<title>" in page.text) == (200, True)
            signed = ask("/sign-in", method="POST", data={"secret": "open sesame", "next": "/access"})
            assert (signed.status_code, signed.headers["location"]) == (303, "/access")
            assert ask("/", name="other.example").status_code == 421
    finally:
        proxy.terminate()
        proxy.wait()
        serving.terminate()
        serving.communicate()
