"""A process that commits versions of datasets which other processes commit at the same time."""

import hashlib
import random
import sys
from contextlib import closing
from pathlib import Path

from tamias.archive.blobs import BlobWriter, LocalPacks, insert_blobs
from tamias.database.connect import Database
from tamias.model.capture import Body

DATASETS, VERSIONS = 6, 5


def content(dataset, version):
    chance = random.Random(dataset)
    lines = [b"%032x" % chance.getrandbits(128) for _ in range(300)]
    for line in range(version * 7):
        lines[line] = b"%d,%d" % (line, version)
    return b"\n".join(lines)


def main(url, folder, seed):
    chance = random.Random(seed)
    datasets = list(range(DATASETS))
    with closing(Database(Path(folder), url)) as database, closing(database.session()) as session:
        writer = BlobWriter(LocalPacks(Path(folder)), session, pack_bytes=20_000)
        for version in range(VERSIONS):
            chance.shuffle(datasets)
            for some in (datasets[:3], datasets[3:]):
                prepared = [prepare(writer, dataset, version) for dataset in some]
                writer.sync()
                session.transact(lambda cursor, prepared=prepared: insert_blobs(cursor, prepared))
                writer.settled()
        writer.close()


def prepare(writer, dataset, version):
    body = content(dataset, version)
    before = hashlib.sha256(content(dataset, version - 1)).hexdigest() if version else None
    return writer.prepare(Body(size=len(body), sha256=hashlib.sha256(body).hexdigest(), data=body), before)


if __name__ == "__main__":
    main(*sys.argv[1:])
