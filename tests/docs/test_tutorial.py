"""The tutorial is run from its first command to its last, and prints what it says it prints."""

import json
import os
import re
import signal
import subprocess
import sysconfig
import threading
from pathlib import Path

import pytest

from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = ROOT / "docs" / "tutorial.md"
NOTEBOOK = ROOT / "examples" / "archive-to-plot.ipynb"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
DIFFERS = "…"
PORTS = ("18765", "18080")
PATIENCE = 300


def read(page, ports):
    """What stands there, with ports that nobody uses here."""
    text = page.read_text(encoding="utf-8")
    for port, free in ports.items():
        text = text.replace(port, free)
    return text


def steps(text):
    """Pairs of a command and what it prints, in order."""
    found = []
    for block in BLOCK.findall(text):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append(([line[2:]], []))
            elif line.startswith(">"):
                found[-1][0].append(line[2:])
            else:
                found[-1][1].append(line)
    return [("\n".join(command), "\n".join(printed)) for command, printed in found]


class Shell:
    """One bash in an empty folder and an empty home, as a reader has it."""

    END = "--- end of output ---"

    def __init__(self, folder):
        path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
        self.process = subprocess.Popen(
            ["bash"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
            env={"PATH": path, "HOME": str(folder), "LC_ALL": "C.UTF-8"},
            start_new_session=True,
        )
        self.watch = threading.Timer(PATIENCE, self._kill)
        self.watch.start()

    def _kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)

    def run(self, command):
        self.process.stdin.write(f"{command}\nprintf '\\n%s\\n' '{self.END}'\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line.rstrip("\n") == self.END:
                return "".join(lines).rstrip("\n")
            lines.append(line)
        raise AssertionError(f"the shell ended in: {command}")

    def close(self):
        self.watch.cancel()
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.communicate(timeout=PATIENCE)


def as_pattern(printed):
    """What is printed, as a regular expression: what differs may be anything, also whole lines."""
    parts = [re.escape(part) for part in printed.split(DIFFERS)]
    return re.compile("(?:.|\n)*?".join(parts) + r"\Z")


@pytest.fixture
def shell(tmp_path):
    shell = Shell(tmp_path)
    yield shell
    shell.close()


def code_of(notebook):
    """The code cells of a notebook, as one script."""
    cells = json.loads(notebook)["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def test_every_command_of_the_tutorial_prints_what_the_page_says_and_the_notebook_goes_on(shell, tmp_path):
    ports = {port: str(free_port()) for port in PORTS}
    done = steps(read(TUTORIAL, ports))
    assert len(done) > 20
    for command, printed in done:
        assert as_pattern(printed).match(shell.run(command)), command
    (tmp_path / "notebook.py").write_text(code_of(read(NOTEBOOK, ports)), encoding="utf-8")
    assert shell.run("MPLBACKEND=agg python notebook.py") == ""
    assert (tmp_path / "budget.png").read_bytes().startswith(b"\x89PNG")
