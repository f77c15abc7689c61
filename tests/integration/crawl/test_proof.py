"""`tamias prove`: with openssl and sha256sum anybody can verify when a version existed."""

import http.server
import json
import re
import shutil
import subprocess
import threading
import zipfile
from base64 import b64decode
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from tamias.database.connect import Database

PAGE = Path(__file__).parents[3] / "docs" / "proof.md"
COMMANDS = re.findall(r"```sh\n(grep.*?)```", PAGE.read_text(), re.DOTALL)[0]
YESTERDAY = b"UPDATE version SET captured_at = version.captured_at - 86400000"
BODIES = {f"/{number}.csv": f"id,value\n1,{number}\n".encode() for number in range(5)}


class TimestampServer(http.server.ThreadingHTTPServer):
    """A timestamp authority: `openssl ts` behind HTTP."""

    def __init__(self, folder):
        super().__init__(("127.0.0.1", 0), _Stamp)
        self.folder, self.asked, self.answers = folder, [], True
        self.may_answer = threading.Event()
        self.may_answer.set()
        (folder / "tsa.cnf").write_text(
            "[tsa]\ndefault_tsa = local\n[local]\nserial = serial\ncrypto_device = builtin\n"
            "signer_cert = tsa.crt\nsigner_key = tsa.key\nsigner_digest = sha256\ndefault_policy = 1.2.3\n"
            "digests = sha256\naccuracy = secs:1\n"
            "[authority]\nbasicConstraints = critical,CA:true\n"
            "[stamps]\nextendedKeyUsage = critical,timeStamping\n"
        )
        (folder / "serial").write_text("01\n")
        new = (
            "req",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-config",
            "/dev/null",
        )
        self.openssl(*new, "-x509", "-subj", "/CN=Authority", "-keyout", "ca.key", "-out", "tsa.pem",
                     "-addext", "basicConstraints=critical,CA:true")  # fmt: skip
        self.openssl(*new, "-subj", "/CN=Timestamps", "-keyout", "tsa.key", "-out", "tsa.csr")
        self.openssl("x509", "-req", "-in", "tsa.csr", "-CA", "tsa.pem", "-CAkey", "ca.key",
                     "-set_serial", "1", "-out", "tsa.crt", "-extfile", "tsa.cnf", "-extensions",
                     "stamps")  # fmt: skip
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def openssl(self, *words):
        return subprocess.run(["openssl", *words], cwd=self.folder, check=True, capture_output=True)

    def close(self):
        self.may_answer.set()
        self.shutdown()
        self.server_close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/tsr"


class _Stamp(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        server = self.server
        query = self.rfile.read(int(self.headers["Content-Length"]))
        server.asked.append((self.headers["Content-Type"], query))
        server.may_answer.wait()
        if not server.answers:
            self.send_error(503)
            return
        name = f"query-{len(server.asked)}"
        (server.folder / name).write_bytes(query)
        server.openssl("ts", "-reply", "-config", "tsa.cnf", "-queryfile", name, "-out", f"{name}.tsr")
        reply = (server.folder / f"{name}.tsr").read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_):
        pass


@pytest.fixture
def tsa(tmp_path):
    (tmp_path / "tsa").mkdir()
    with closing(TimestampServer(tmp_path / "tsa")) as server:
        yield server


@pytest.fixture
def archive(tamias, site, tsa):
    """Five watched tables, captured once."""
    site.pages |= BODIES
    tamias.env["TAMIAS_PROOF__TSA"] = tsa.url
    assert tamias.run("add", *map(site.url, BODIES)).returncode == 0
    assert tamias.crawl("--recrawl").returncode == 0
    return tamias


def prove(tamias, url, *words, name="proof.zip"):
    return tamias.run("prove", url, "--allow-private", "-o", str(tamias.data.parent / name), *words)


def unpack(tamias, name="proof.zip"):
    folder = tamias.data.parent / name.removesuffix(".zip")
    with zipfile.ZipFile(tamias.data.parent / name) as zipped:
        zipped.extractall(folder)
    return folder


def verify(folder, tsa):
    """Run the commands of the page as they are, where nothing but a shell, coreutils, grep and openssl is."""
    shutil.copy(tsa.folder / "tsa.pem", folder)
    found = subprocess.run(
        ["sh", "-e", "-c", COMMANDS],
        check=False,
        cwd=folder,
        env={"PATH": "/usr/bin:/bin"},
        text=True,
        capture_output=True,
    )
    return found.returncode, found.stdout + found.stderr


def test_a_stranger_verifies_a_proof_with_the_commands_of_the_page(archive, site, tsa):
    for url, body in BODIES.items():
        done = json.loads(prove(archive, site.url(url), "--json", name=f"{url[1]}.zip").stdout)
        folder = unpack(archive, f"{url[1]}.zip")
        assert (folder / "body").read_bytes() == body
        assert (folder / "version.txt").read_text() == (
            f"tamias-version: 1\nurl: {site.url(url)}\ncaptured: {done['captured_at']}\n"
            f"sha256: {sha256(body).hexdigest()}\n"
        )
        assert COMMANDS in (folder / "README.md").read_text()
        code, said = verify(folder, tsa)
        assert code == 0, said
        assert f"sha256: {sha256(body).hexdigest()}" in said
        assert "Verification: OK" in said
        assert "Time stamp: " in said
    assert len(tsa.asked) == 1, "one timestamp for all versions of the day"
    assert tsa.asked[0][0] == "application/timestamp-query"


@pytest.mark.parametrize("file", ["body", "version.txt", "path.txt", "timestamp.tsr"])
def test_a_proof_that_was_changed_is_not_verified(archive, site, tsa, file):
    assert prove(archive, site.url("/3.csv")).returncode == 0
    folder = unpack(archive)
    content = bytearray((folder / file).read_bytes())
    # A digit of a digest; the last character of the path may be the mark of the digest so far.
    content[max(content.rfind(digit) for digit in b"0123456789abcdef")] ^= 1
    (folder / file).write_bytes(content)
    code, said = verify(folder, tsa)
    assert code != 0, said
    assert "Verification: OK" not in said


def test_versions_that_came_later_get_a_timestamp_of_their_own_and_the_first_ones_stay(archive, site, tsa):
    first = json.loads(prove(archive, site.url("/0.csv"), "--json").stdout)
    site.pages["/new.csv"] = b"a,b\n7,8\n"
    assert archive.run("add", site.url("/new.csv")).returncode == 0
    assert archive.crawl("--recrawl").returncode == 0
    new = json.loads(prove(archive, site.url("/new.csv"), "--json", name="new.zip").stdout)
    again = json.loads(prove(archive, site.url("/0.csv"), "--json", name="again.zip").stdout)
    assert (again, new["root"] != first["root"], len(tsa.asked)) == (first, True, 2)
    assert verify(unpack(archive, "new.zip"), tsa)[0] == 0


def test_a_day_that_is_over_is_stamped_beside_the_regular_work_and_only_once(archive, site, tsa):
    with closing(Database(archive.data)) as database, closing(database.session()) as session:
        session.execute(YESTERDAY)
    assert archive.crawl("--recrawl").returncode == 0
    assert archive.crawl("--recrawl").returncode == 0
    assert len(tsa.asked) == 1
    archive.env["TAMIAS_PROOF__TSA"] = ""
    for url in BODIES:
        assert prove(archive, site.url(url), name=f"{url[1]}.zip").returncode == 0
        assert verify(unpack(archive, f"{url[1]}.zip"), tsa)[0] == 0


def test_a_timestamp_server_that_is_away_does_not_fail_a_crawl(archive, tsa):
    tsa.answers = False
    with closing(Database(archive.data)) as database, closing(database.session()) as session:
        session.execute(YESTERDAY)
    assert archive.crawl("--recrawl").returncode == 0
    assert tsa.asked
    tsa.answers = True
    before = len(tsa.asked)
    assert archive.crawl("--recrawl").returncode == 0
    assert len(tsa.asked) == before + 1


def test_a_forgotten_version_is_in_no_new_proof_and_the_others_are_proved_by_its_digest(archive, site, tsa):
    assert prove(archive, site.url("/0.csv")).returncode == 0
    assert archive.run("forget", site.url("/1.csv"), "--reason", "wrong").returncode == 0
    done = prove(archive, site.url("/1.csv"), name="forgotten.zip")
    assert done.returncode != 0
    assert "forgotten" in done.stderr
    assert not (archive.data.parent / "forgotten.zip").exists()
    assert prove(archive, site.url("/2.csv"), name="other.zip").returncode == 0
    assert verify(unpack(archive, "other.zip"), tsa)[0] == 0
    assert len(tsa.asked) == 1
    assert archive.run("check").returncode == 0


def test_a_version_forgotten_before_its_day_is_stamped_has_no_digest_in_the_tree(archive, site, tsa):
    assert archive.run("forget", site.url("/1.csv"), "--reason", "wrong").returncode == 0
    assert prove(archive, site.url("/0.csv")).returncode == 0
    path = (unpack(archive) / "path.txt").read_text()
    assert len(path.splitlines()) == 2, "a tree of four"


def test_a_restored_backup_gives_the_same_proof(archive, site, tsa, tamias_at):
    first = json.loads(prove(archive, site.url("/0.csv"), "--json").stdout)
    folder = str(archive.data.parent / "backup")
    assert archive.run("backup", folder).returncode == 0
    archive.end()
    copy = tamias_at("restored")
    copy.env["TAMIAS_PROOF__TSA"] = ""
    assert copy.run("restore", folder).returncode == 0
    assert json.loads(prove(copy, site.url("/0.csv"), "--json", name="copy.zip").stdout) == first
    assert verify(unpack(copy, "copy.zip"), tsa)[0] == 0


def test_a_command_that_is_killed_leaves_nothing_and_the_next_one_goes_on(archive, site, tsa, kill):
    tsa.may_answer.clear()
    process = archive.start(
        "prove", site.url("/0.csv"), "--allow-private", "-o", str(archive.data.parent / "proof.zip")
    )
    while not tsa.asked:
        assert process.poll() is None, process.stderr.read()
        threading.Event().wait(0.05)
    kill(process.pid)
    process.wait()
    tsa.may_answer.set()
    assert not (archive.data.parent / "proof.zip").exists()
    assert prove(archive, site.url("/0.csv")).returncode == 0
    assert verify(unpack(archive), tsa)[0] == 0
    assert archive.run("check").returncode == 0


def test_a_server_that_gives_no_timestamp_is_one_sentence(archive, site, tsa):
    tsa.answers = False
    done = prove(archive, site.url("/0.csv"))
    assert done.returncode != 0
    assert tsa.url in done.stderr
    assert len(done.stderr.splitlines()) == 1
    refused = archive.run("prove", site.url("/0.csv"), "-o", str(archive.data.parent / "proof.zip"))
    assert "private" in refused.stderr or "loopback" in refused.stderr
    assert len(tsa.asked) == 1
    archive.env["TAMIAS_PROOF__TSA"] = ""
    assert "proof.tsa" in prove(archive, site.url("/0.csv")).stderr


@pytest.fixture
def signed(archive, tsa, site):
    """`signed(domain)` is a WACZ signed by a key, and for a domain by its certificate too: its last file."""
    new = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-config", "/dev/null")
    tsa.openssl(*new, "-subj", "/CN=crawler.example", "-keyout", "wacz.key", "-out", "wacz.csr")
    tsa.openssl("x509", "-req", "-in", "wacz.csr", "-CA", "tsa.pem", "-CAkey", "ca.key", "-set_serial", "2",
                "-out", "wacz.crt")  # fmt: skip
    root = (tsa.folder / "tsa.pem").read_text()
    for name in ("wacz", "tsa"):
        (tsa.folder / f"{name}-chain.pem").write_text((tsa.folder / f"{name}.crt").read_text() + root)
    (tsa.folder / "wacz.key").chmod(0o600)

    def make(domain=""):
        archive.env["TAMIAS_PROOF__KEY"] = str(tsa.folder / "wacz.key")
        archive.env["TAMIAS_PERMIT__ALLOW_PRIVATE"] = "true"
        if domain:
            archive.env["TAMIAS_PROOF__DOMAIN"] = domain
            archive.env["TAMIAS_PROOF__CERTIFICATE"] = str(tsa.folder / "wacz-chain.pem")
            archive.env["TAMIAS_PROOF__TSA_CERTIFICATE"] = str(tsa.folder / "tsa-chain.pem")
        file = archive.data.parent / "signed.wacz"
        done = archive.run("export", "--format", "wacz", "-o", str(file))
        assert done.returncode == 0, done.stderr
        with zipfile.ZipFile(file) as zipped:
            description = zipped.read("datapackage.json")
            digest = json.loads(zipped.read("datapackage-digest.json"))
        data = digest["signedData"]
        assert digest["hash"] == data["hash"] == f"sha256:{sha256(description).hexdigest()}"
        assert data["created"] == json.loads(description)["created"]
        (tsa.folder / "signature").write_bytes(b64decode(data["signature"]))
        (tsa.folder / "hash").write_text(data["hash"])
        return data

    return make


def test_the_signature_of_a_wacz_is_verified_by_openssl(signed, tsa):
    data = signed()
    assert data.keys() == {"hash", "created", "software", "version", "signature", "publicKey"}
    (tsa.folder / "public.der").write_bytes(b64decode(data["publicKey"]))
    words = ("dgst", "-sha256", "-verify", "public.der", "-keyform", "DER", "-signature", "signature")
    assert tsa.openssl(*words, "hash").stdout == b"Verified OK\n"
    (tsa.folder / "hash").write_text(data["hash"][:-1])
    with pytest.raises(subprocess.CalledProcessError):
        tsa.openssl(*words, "hash")


def test_the_signature_of_a_domain_and_its_time_are_verified_by_openssl(signed, tsa):
    data = signed("crawler.example")
    assert (data["domain"], "publicKey" in data) == ("crawler.example", False)
    (tsa.folder / "chain.pem").write_text(data["domainCert"])
    tsa.openssl("verify", "-CAfile", "tsa.pem", "chain.pem")
    (tsa.folder / "public.pem").write_bytes(
        tsa.openssl("x509", "-in", "chain.pem", "-pubkey", "-noout").stdout
    )
    words = ("dgst", "-sha256", "-verify", "public.pem", "-signature", "signature")
    assert tsa.openssl(*words, "hash").stdout == b"Verified OK\n"
    (tsa.folder / "stamp.tsr").write_bytes(b64decode(data["timeSignature"]))
    (tsa.folder / "stamped").write_text(data["signature"])
    (tsa.folder / "stamps.pem").write_text(data["timestampCert"])
    verify = ("ts", "-verify", "-data", "stamped", "-in", "stamp.tsr", "-CAfile", "stamps.pem")
    assert b"Verification: OK" in tsa.openssl(*verify).stdout


def test_a_key_that_cannot_sign_is_one_sentence(signed, archive, tsa):
    file = archive.data.parent / "none.wacz"
    signed("crawler.example")

    def refused(**settings):
        old = dict(archive.env)
        archive.env |= {f"TAMIAS_PROOF__{name.upper()}": str(value) for name, value in settings.items()}
        done = archive.run("export", "--format", "wacz", "-o", str(file))
        archive.env.clear()
        archive.env |= old
        assert (done.returncode, file.exists(), len(done.stderr.splitlines())) == (4, False, 1), done.stderr
        return done.stderr

    assert "certificate" in refused(key=tsa.folder / "ca.key")
    (tsa.folder / "open.key").write_bytes((tsa.folder / "ca.key").read_bytes())
    (tsa.folder / "open.key").chmod(0o644)
    assert "chmod 600" in refused(key=tsa.folder / "open.key")
    assert "proof.tsa" in refused(tsa="")
    assert "prime256v1" in refused(certificate=tsa.folder / "serial")
    assert archive.run("key", "make", str(tsa.folder / "ed.pem")).returncode == 0
    assert "prime256v1" in refused(key=tsa.folder / "ed.pem")
