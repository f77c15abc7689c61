"""MinIO, built from its source at a pinned release by Go's own tool.

MinIO is under the AGPL: it is built and run for tests only.
"""

import os
import subprocess
from pathlib import Path

from servers.packages import NotRun, installed, program

VERSION = "v0.0.0-20250422221226-0d7408fc9969"
"""RELEASE.2025-04-22T22-12-26Z."""
USER, PASSWORD = "loopback", "a secret of the test"
_PATIENCE = 3600


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
