"""The reference project's own Java stubs talk to the service: put, get, stats, dump and the other calls."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROBE = Path(__file__).with_name("UrlFrontierProbe.java")
POM = """<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId>
<version>1</version>
<dependencies><dependency><groupId>com.github.crawler-commons</groupId><artifactId>urlfrontier-API</artifactId>
<version>2.5</version></dependency></dependencies></project>"""


@pytest.fixture
def classpath(tmp_path):
    """The stubs and what they need, from the Maven index."""
    if not (shutil.which("mvn") and shutil.which("javac")):
        pytest.skip("Maven and a Java compiler are not installed")
    (tmp_path / "pom.xml").write_text(POM, encoding="utf-8")
    command = ["mvn", "-q", "-B", "dependency:build-classpath", "-Dmdep.outputFile=classpath"]
    subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, timeout=300)
    if not (tmp_path / "classpath").exists():
        pytest.skip("urlfrontier-API 2.5 cannot be had from the Maven index")
    return (tmp_path / "classpath").read_text(encoding="utf-8").strip()


@pytest.fixture
def address(tmp_path):
    words = [
        sys.executable,
        "-m",
        "tamias",
        "frontier",
        "--data",
        str(tmp_path / "data"),
        "--port",
        "0",
        "--json",
    ]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    yield json.loads(process.stdout.readline())["address"]
    process.send_signal(signal.SIGTERM)
    process.wait(30)
    process.stdout.close()


def test_the_java_stubs_are_answered(classpath, address):
    command = ["java", "-cp", classpath, str(PROBE), address, "1000"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert told.stdout.splitlines() == [
        "acked 1000",
        "size 1000 queues 10 DEFAULT",
        "got 6",
        "held 6",
        "dumped 1000",
        "counted 111",
        "queues 10",
        "active true",
        "crawls [DEFAULT]",
        "nodes 1",
        "status true true",
        "deleted 100",
        "rest 900",
    ], told.stderr
