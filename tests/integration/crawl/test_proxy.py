"""Crawls through a proxy: what it is asked for, what is refused before, and what happens when it is away."""

import base64
import shutil
import socket
import socketserver
import struct
import subprocess
import threading
import time
from contextlib import closing

import pytest

from tests.messages import unsaid

PAGE = b"<> <#is> <#here> ; <#to> </next> ."
LOGIN = "crawler:open sesame"


class Proxy(socketserver.ThreadingTCPServer):
    """An HTTP proxy that knows CONNECT only, or a SOCKS5 proxy; `asked` has the hosts and ports."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, scheme, login=None, names=None):
        self.scheme, self.login, self.names, self.asked = scheme, login, names or {}, []
        super().__init__(("127.0.0.1", 0), Connection)
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self):
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}"

    def connect(self, host, port):
        self.asked.append((host, port))
        return socket.create_connection((self.names.get(host, host), port), timeout=20)


class Connection(socketserver.StreamRequestHandler):
    def handle(self):
        there = self.by_connect() if self.server.scheme == "http" else self.by_socks()
        if there is None:
            return
        with closing(there):
            back = threading.Thread(target=pump, args=(there, self.request), daemon=True)
            back.start()
            pump(self.request, there)
            back.join(5)

    def by_connect(self):
        method, target, _ = self.rfile.readline().decode().split()
        headers = {}
        while line := self.rfile.readline().strip():
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        wanted = self.server.login and f"Basic {base64.b64encode(self.server.login.encode()).decode()}"
        if method != "CONNECT" or headers.get("proxy-authorization") != wanted:
            self.wfile.write(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")
            return None
        host, _, port = target.rpartition(":")
        there = self.server.connect(host.strip("[]"), int(port))
        self.wfile.write(b"HTTP/1.1 200 Connected\r\nX-Proxy: yes\r\n\r\n")
        return there

    def by_socks(self):
        _, count = self.rfile.read(2)
        self.rfile.read(count)
        self.wfile.write(b"\x05\x00")
        _, _, _, kind = self.rfile.read(4)
        if kind == 1:
            host = socket.inet_ntoa(self.rfile.read(4))
        else:
            host = self.rfile.read(self.rfile.read(1)[0]).decode()
        (port,) = struct.unpack("!H", self.rfile.read(2))
        there = self.server.connect(host, port)
        self.wfile.write(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
        return there


def pump(source, target):
    try:
        while piece := source.recv(65536):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


@pytest.fixture
def proxy(tamias, request):
    made = []

    def make(scheme="http", **options):
        made.append(Proxy(scheme, **options))
        tamias.env["TAMIAS_FETCH__PROXY"] = made[-1].url
        return made[-1]

    yield make
    for each in made:
        each.shutdown()
        each.server_close()


@pytest.fixture
def pages(site):
    site.pages |= {"/": PAGE, "/next": b"<> <#is> <#there> ."}
    return site


@pytest.mark.parametrize("scheme", ["http", "socks5"])
def test_every_request_goes_through_the_proxy(tamias, pages, proxy, scheme):
    way = proxy(scheme)
    done = tamias.crawl(pages.url("/"))
    assert done.returncode == 0, done.stderr
    assert set(way.asked) == {("127.0.0.1", pages.server.server_port)}
    assert len(tamias.quads()) == 3
    assert [path for path, _ in pages.log] == ["/robots.txt", "/", "/next"]


def test_the_proxy_is_given_the_address_that_was_checked(tamias, pages, proxy):
    way = proxy()
    url = pages.url("/").replace("127.0.0.1", "data.test")
    done = tamias.crawl(url, "--resolve", "data.test:127.0.0.1")
    assert done.returncode == 0, done.stderr
    assert {host for host, _ in way.asked} == {"127.0.0.1"}
    assert len(tamias.quads()) == 3


def test_a_private_address_is_never_named_to_the_proxy(tamias, pages, proxy):
    way = proxy()
    for words in (("--resolve", "data.test:10.0.0.7", "http://data.test/"), (pages.url("/"),)):
        done = tamias.run("crawl", "--delay", "0", "--workers", "1", *words)
        assert "address" in done.stderr, done.stderr
    assert way.asked == []
    reasons = {each["reason"] for tried in tamias.attempts().values() for each in tried}
    assert reasons == {"private address 10.0.0.7", "loopback address 127.0.0.1"}


def test_a_name_that_only_the_proxy_knows_is_sent_where_it_is_allowed(tamias, pages, proxy):
    way = proxy("socks5", names={"inside.test": "127.0.0.1"})
    url = pages.url("/").replace("127.0.0.1", "inside.test")
    tamias.env["TAMIAS_FETCH__PROXY_RESOLVES"] = "true"
    done = tamias.crawl(url)
    assert done.returncode == 0, done.stderr
    asked = [*way.asked]
    assert {host for host, _ in asked} == {"inside.test"}
    del tamias.env["TAMIAS_FETCH__PROXY_RESOLVES"]
    tamias.crawl(url, "--crawl", "again")
    assert way.asked == asked


def test_an_address_is_not_asked_for_what_a_name_has(tamias, site_at, proxy):
    """One handle of curl is used for both, one after the other."""
    way = proxy("socks5", names={"inside.test": "127.0.0.2"})
    tamias.env |= {"TAMIAS_FETCH__PROXY_RESOLVES": "true", "TAMIAS_FETCH__CONCURRENCY": "1"}
    first, second = site_at("127.0.0.1"), site_at("127.0.0.2")
    inside = second.url("/named").replace("127.0.0.2", "inside.test")
    first.pages["/"] = f"<> <#to> <{inside}> .".encode()
    second.pages["/named"] = b"<> <#is> <#there> ."
    done = tamias.crawl(first.url("/"), "--max-wait", "1")
    assert done.returncode == 0, done.stderr
    assert set(way.asked) == {
        ("127.0.0.1", first.server.server_port),
        ("inside.test", second.server.server_port),
    }
    assert second.asked("/named") == 1


def test_a_login_comes_from_a_file_that_others_cannot_read(tamias, pages, proxy, tmp_path):
    way = proxy(login=LOGIN)
    file = tmp_path / "login"
    file.write_text(LOGIN + "\n")
    file.chmod(0o600)
    tamias.env["TAMIAS_FETCH__PROXY_LOGIN"] = str(file)
    done = tamias.crawl(pages.url("/"))
    assert done.returncode == 0, done.stderr
    assert way.asked
    file.chmod(0o644)
    done = tamias.crawl(pages.url("/"))
    assert done.returncode == 4
    assert "chmod 600" in done.stderr
    assert "sesame" not in done.stderr


def test_a_proxy_that_is_away_is_named(tamias, pages, proxy):
    way = proxy()
    way.shutdown()
    way.server_close()
    done = tamias.crawl(pages.url("/"), "--max-wait", "1")
    assert done.returncode in (1, 5), done.stderr
    assert not unsaid(done.stderr, way.url)
    assert pages.log == []


def test_an_address_of_a_proxy_that_is_none_is_refused(tamias, pages):
    tamias.env["TAMIAS_FETCH__PROXY"] = "proxy.example"
    done = tamias.crawl(pages.url("/"))
    assert done.returncode == 4
    assert "fetch.proxy must be http://HOST:PORT" in done.stderr


def run_microsocks(folder, port, user, password):
    return ["microsocks", "-i", "127.0.0.1", "-p", port, "-u", user, "-P", password]


def run_tinyproxy(folder, port, user, password):
    settings = folder / "tinyproxy.conf"
    settings.write_text(
        f'Port {port}\nListen 127.0.0.1\nTimeout 60\nBasicAuth {user} {password}\nLogFile "{folder}/log"\n'
        "LogLevel Connect\n"
    )
    return ["tinyproxy", "-d", "-c", settings]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("scheme", "command"),
    [("socks5", run_microsocks), ("http", run_tinyproxy)],
    ids=["microsocks", "tinyproxy"],
)
def test_proxies_of_debian_carry_a_crawl_with_a_login_and_refuse_one_without(
    tamias, pages, tmp_path, scheme, command
):
    """`make nightly` installs them."""
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    words = [str(word) for word in command(tmp_path, port, "crawler", "sesame")]
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    tamias.env["TAMIAS_FETCH__PROXY"] = f"{scheme}://127.0.0.1:{port}"
    login = tmp_path / "login"
    login.write_text("crawler:sesame")
    login.chmod(0o600)
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        wait_for(port)
        refused = tamias.crawl(pages.url("/"), "--max-wait", "1")
        assert pages.log == [], refused.stderr
        tamias.env["TAMIAS_FETCH__PROXY_LOGIN"] = str(login)
        done = tamias.crawl(pages.url("/"), "--crawl", "allowed")
    finally:
        process.terminate()
        said = process.communicate(timeout=20)[1]
    assert done.returncode == 0, done.stderr
    assert [path for path, _ in pages.log] == ["/robots.txt", "/", "/next"]
    assert len(tamias.quads()) == 3
    log = said + "".join(path.read_text() for path in tmp_path.glob("log"))
    assert f"127.0.0.1:{pages.server.server_port}" in log, log


def wait_for(port):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with closing(socket.socket()) as trial:
            if trial.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("the proxy did not start")
