"""Processes that work on a crawl that somebody else began."""

import json

from tests.ports import free_port


def start_worker(tamias):
    """A worker at the database."""
    return tamias.start("worker", "--workers", "1", "--allow-private")


def start_far_worker(tamias):
    """A worker without a database, and the frontier that it asks."""
    frontier = tamias.start("frontier", "--port", "0", "--json")
    address = json.loads(frontier.stdout.readline())["address"]
    scratch = str(tamias.data.parent / "scratch")
    words = ("--frontier", address, "--workers", "1", "--scratch", scratch, "--allow-private")
    return tamias.start("worker", *words)


def start_service(tamias):
    """The service, which is allowed nothing of its own."""
    port = free_port()
    return tamias.start("serve", "--port", str(port), "--workers", "1")


OTHERS = {"worker": start_worker, "far worker": start_far_worker, "service": start_service}
