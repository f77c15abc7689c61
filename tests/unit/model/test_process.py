"""A process that ends without taking its modules down still does all that others rely on."""

import subprocess
import sys

from tests.messages import unsaid

WORK = """
import atexit, sys, threading, time
from tamias.model.process import end_process

def work():
    time.sleep(0.2)
    print("thread")

class Module:
    def __del__(self):
        print("taken down")

held = Module()
atexit.register(print, "exit function")
threading.Thread(target=work).start()
print("last words", end="")
end_process(7)
"""


def run(code, **options):
    command = [sys.executable, "-c", code]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, timeout=60, **options)


def test_threads_are_waited_for_and_exit_functions_called_and_all_is_written():
    done = run(WORK, stdout=subprocess.PIPE)
    assert (done.returncode, done.stdout, done.stderr) == (7, "last wordsthread\nexit function\n", "")


def test_words_that_nobody_takes_are_an_error_as_they_are_without_it():
    with open("/dev/full", "w") as full:
        done = run(WORK, stdout=full)
        usual = run("import sys; print('last words', end=''); sys.exit(7)", stdout=full)
    assert done.returncode == usual.returncode != 7
    assert not unsaid(done.stderr)
