"""Which PostgreSQL programs there are."""

import subprocess

from tamias.features.embedded import server


def test_the_programs_of_the_wheel_are_of_the_version_that_they_say_they_are():
    newest = server.newest()
    told = subprocess.run(
        [newest.program("postgres"), "--version"], capture_output=True, text=True, check=True
    )
    assert told.stdout.startswith(f"postgres (PostgreSQL) {newest.major}.")
