"""Places where a process dies when a test wants it to."""

import os
import signal
import subprocess
import sys

import pytest

from tamias.model.errors import ConfigError
from tamias.model.faults import Fault
from tests.messages import saying, unsaid

WALK = """
from tamias.model.faults import reached, refuse_faults
for step in range(1, 6):
    print(step, flush=True)
    reached("elsewhere")
    reached("here")
refuse_faults("serve")
"""


def walk(fault):
    env = {name: value for name, value in os.environ.items() if name != "TAMIAS_FAULT"}
    if fault is not None:
        env["TAMIAS_FAULT"] = fault
    return subprocess.run(
        [sys.executable, "-c", WALK], env=env, capture_output=True, text=True, check=False, timeout=60
    )


def test_without_a_fault_every_place_is_passed():
    done = walk(None)
    assert (done.returncode, done.stdout.split()) == (0, ["1", "2", "3", "4", "5"])


@pytest.mark.parametrize(("fault", "steps"), [("here", 1), ("here:3", 3)])
def test_a_process_is_killed_when_it_gets_there_for_that_time(fault, steps):
    done = walk(fault)
    assert (done.returncode, len(done.stdout.split())) == (-signal.SIGKILL, steps)
    assert done.stderr == "TAMIAS_FAULT: killed at here\n"


def test_what_others_rely_on_refuses_faults():
    done = walk("nowhere")
    assert not unsaid(done.stderr.splitlines()[-1], "TAMIAS_FAULT")


@pytest.mark.parametrize("text", [":3", "here:", "here:soon", "here:-1", "here:0"])
def test_a_fault_that_makes_no_sense_is_told(text):
    with pytest.raises(ConfigError, check=saying()):
        Fault(text)
