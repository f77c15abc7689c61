"""A process that commits three bodies and kills itself at a step that it is told by number.

Reads a number a line; for each forks a child that does the work, and says how the child ended.
"""

import os
import random
import signal
import sys
from contextlib import closing
from pathlib import Path

from tamias.archive.blobs import BlobWriter, LocalPacks, insert_blobs
from tamias.database.connect import Database, Session
from tamias.model.capture import Body


class Fate:
    """Counts steps, and ends the process at one of them."""

    def __init__(self, last):
        self.last = last
        self.steps = 0

    def step(self):
        if self.steps == self.last:
            os.kill(os.getpid(), signal.SIGKILL)
        self.steps += 1

    def around(self, function):
        def stepping(*arguments, **options):
            self.step()
            answer = function(*arguments, **options)
            self.step()
            return answer

        return stepping

    def in_halves(self, write):
        def stepping(file, content):
            if len(content) < 2:
                return write(file, content)
            self.step()
            written = write(file, content[: len(content) // 2])
            self.step()
            return written

        return stepping


def main(url, folder):
    import hashlib

    database = Database(Path(folder), url)
    for line in sys.stdin:
        number = int(line)
        child = os.fork()
        if child == 0:
            with closing(database.session()) as session:
                commit(session, Path(folder), Fate(number), hashlib.sha256, number)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print("killed" if os.WIFSIGNALED(status) else f"ended {os.WEXITSTATUS(status)}", flush=True)  # noqa: T201


def commit(session, folder, fate, digest, number):
    os.write = fate.in_halves(os.write)
    os.fdatasync = fate.around(os.fdatasync)
    os.fsync = fate.around(os.fsync)
    Session.transact = fate.around(Session.transact)
    chance = random.Random(number)
    old = b"\n".join(b"%d,%032x" % (line, chance.getrandbits(128)) for line in range(400))
    bodies = [old, chance.randbytes(20_000), old.replace(b"\n1", b"\n2", 5), chance.randbytes(20_000)]
    writer = BlobWriter(LocalPacks(folder), session, pack_bytes=30_000)
    prepared, previous = [], None
    for content in bodies:
        body = Body(size=len(content), sha256=digest(content).hexdigest(), data=content)
        prepared.append(writer.prepare(body, previous))
        previous = previous or body.sha256
    writer.sync()

    def rows(cursor):
        insert_blobs(cursor, prepared)
        fate.step()

    session.transact(rows)
    writer.settled()
    writer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
