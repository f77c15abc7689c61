"""Results that are written to a file of the user's."""

import os
import stat
import threading

from tamias.cli.console.output import to_file


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    """As /dev/null would: a file in its place, by a root's command, breaks the machine."""
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    to_file(lambda file: file.write(b"all of it"), pipe)
    reader.join(10)
    assert got == [b"all of it"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_file_appears_complete_in_the_place_of_the_one_before(tmp_path):
    path = tmp_path / "result"
    path.write_bytes(b"before")
    to_file(lambda file: file.write(b"after"), path)
    assert path.read_bytes() == b"after"
    assert os.listdir(tmp_path) == ["result"]
