"""After many clients have put, got, completed and deleted at once, the tables agree with each other."""

import random
import threading
from contextlib import closing

import grpc
from frontier_client import Client, Instance, known

HOURS = 3600

WRONG_COUNTS = """
SELECT count(*) FROM queue JOIN LATERAL (
    SELECT count(*) AS known, count(*) FILTER (WHERE due < 9223372036854775807) AS open FROM url
    WHERE url.bucket = queue.bucket AND url.qid = queue.qid AND url.crawl = queue.crawl) AS real ON true
WHERE (queue.known, queue.open) <> (real.known, real.open)
"""
WITHOUT_QUEUE = """
SELECT count(*) FROM url WHERE NOT EXISTS (
    SELECT FROM queue WHERE queue.bucket = url.bucket AND queue.qid = url.qid AND queue.crawl = url.crawl)
"""
SLEEPERS = """
SELECT count(*) FROM host
WHERE ready_at > %s AND EXISTS (
    SELECT FROM url JOIN queue USING (bucket, qid, crawl, lane)
    WHERE url.bucket = host.bucket AND url.qid = host.qid AND due <= %s
      AND (queue.held_until IS NULL OR due > queue.held_to))
"""
TWO_CLIENTS, ROUNDS, HOSTS = 3, 25, 12


def one_client(address, number, got, failures):
    chance = random.Random(number)
    try:
        with closing(Client(address)) as client:
            for turn in range(ROUNDS):
                urls = [
                    f"http://h{chance.randrange(HOSTS)}.example/{chance.randrange(400)}" for _ in range(40)
                ]
                client.discover(*urls, crawl="crowd")
                given = client.get(urls=100, queues=4, hold=HOURS, crawlID="crowd")
                got.extend(given)
                client.put(*(known(url, 0, crawl="crowd") for url in given[::2]))
                if turn % 10 == 9:
                    client.call("DeleteQueue", key=f"h{chance.randrange(HOSTS)}.example", crawlID="crowd")
    except grpc.RpcError as error:
        failures.append(error)


def test_counts_and_wake_ups_are_right_after_a_crowd(instance, client, frontier_data, frontier_session):
    other = Instance(frontier_data)
    client.call("SetDelay", delay_ms=0)
    got, failures = [], []
    threads = [
        threading.Thread(target=one_client, args=(address, number, got, failures))
        for number, address in enumerate([instance.address, other.address] * TWO_CLIENTS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.stop()

    def ask(cursor):
        now = frontier_session.now()
        return [
            cursor.execute(text, values).fetchone()[0]
            for text, values in ((WRONG_COUNTS, None), (WITHOUT_QUEUE, None), (SLEEPERS, [now, now]))
        ]

    assert not failures
    assert got
    assert frontier_session.transact(ask) == [0, 0, 0]
