"""The embedded database's PostgreSQL at a TCP address: `python postgres_here.py FOLDER ADDRESS`.

It is a program of its own, because it is started inside the namespaces of a machine.
"""

import subprocess
import sys
from pathlib import Path

from tamias.features.embedded.server import newest, server_account

USER, PASSWORD, PORT = "tamias", "a-word-of-the-test", 5432


def main(folder: Path, address: str) -> int:
    """Until it is told to end."""
    folder.mkdir(exist_ok=True)
    (folder / "password").write_text(PASSWORD, encoding="utf-8")
    programs = Path(newest().folder)
    words = ["-D", "pg", "-U", USER, "--auth=scram-sha-256", "--pwfile=password", "--no-sync", "--locale=C"]
    account = server_account(folder)
    subprocess.run(
        [programs / "initdb", *words, "--encoding=UTF8"], check=True, cwd=folder, preexec_fn=account.enter()
    )
    (folder / "pg" / "pg_hba.conf").write_text("host all all 0.0.0.0/0 scram-sha-256\n", encoding="utf-8")
    settings = (f"listen_addresses={address}", f"port={PORT}", "unix_socket_directories=", "fsync=off")
    options = [word for each in settings for word in ("-c", each)]
    with subprocess.Popen(
        [programs / "postgres", "-D", "pg", *options],
        cwd=folder,
        preexec_fn=account.enter(ends_with_parent=True),  # noqa: PLW1509 (one thread)
    ) as server:
        return server.wait()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
