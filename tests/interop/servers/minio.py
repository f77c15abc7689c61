"""MinIO, built from its source at a pinned release by Go's own tool.

MinIO is under the AGPL: it is built and run for tests only.
"""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from servers.packages import NotRun, installed, program
from servers.running import free_port, is_answering

VERSION = "v0.0.0-20250422221226-0d7408fc9969"
"""RELEASE.2025-04-22T22-12-26Z."""
USER, PASSWORD = "loopback", "a secret of the test"
_PATIENCE = 3600
_READY_SECONDS = 60.0


def build() -> Path:
    """The server's program."""
    tool = program("go")

    def install(folder: Path) -> None:
        command = [tool, "install", f"github.com/minio/minio@{VERSION}"]
        environment = {**os.environ, "GOBIN": str(folder)}
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=_PATIENCE, env=environment)
        except subprocess.CalledProcessError as error:
            raise NotRun(f"go install failed: {error.stderr.decode(errors='replace')[-300:]}") from None
        except subprocess.TimeoutExpired:
            raise NotRun(f"go install took more than {_PATIENCE} s") from None

    return installed(f"minio {VERSION}", install) / "minio"


class MinioServer:
    """A running server with one bucket, `tamias`. It can be killed and started again."""

    def __init__(self, folder: Path, file: Path) -> None:
        (folder / "objects" / "tamias").mkdir(parents=True)
        self._folder, self._file, self.port = folder, file, free_port()
        self.start()

    @property
    def environment(self) -> dict[str, str]:
        """How a client finds it."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": USER,
            "AWS_SECRET_ACCESS_KEY": PASSWORD,
        }

    def start(self) -> None:
        """On the same objects and port each time; waits for it."""
        keys = {"MINIO_ROOT_USER": USER, "MINIO_ROOT_PASSWORD": PASSWORD}
        place = f"127.0.0.1:{self.port}"
        words = [str(self._file), "server", str(self._folder / "objects"), "--address", place]
        with (self._folder / "log").open("ab") as log:
            self.process = subprocess.Popen(words, env={**os.environ, **keys}, stdout=log, stderr=log)
        deadline = time.monotonic() + _READY_SECONDS
        while not is_answering(f"http://127.0.0.1:{self.port}/minio/health/live"):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise NotRun("MinIO does not answer")
            time.sleep(0.1)

    def kill(self) -> None:
        """At once."""
        self.process.kill()
        self.process.wait()


@contextmanager
def start(folder: Path) -> Iterator[MinioServer]:
    """A server until the end of the block."""
    server = MinioServer(folder, build())
    try:
        yield server
    finally:
        server.kill()
