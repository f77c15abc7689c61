"""A web that the tests of this folder share, and a client that speaks plain HTTP to it."""

import http.client
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from tamias.features.demo.plan import make_plan
from tamias.features.demo.server import serving


@pytest.fixture(scope="session")
def plan():
    return make_plan(seed=1, nodes=12)


@pytest.fixture(scope="session")
def web(plan):
    with serving(plan) as running:
        yield running


def ask(url, method="GET", **headers):
    """One request on a connection of its own; redirects are not followed."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=10)
    try:
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.request(
            method, target, headers={name.replace("_", "-"): value for name, value in headers.items()}
        )
        response = connection.getresponse()
        return SimpleNamespace(status=response.status, headers=response.headers, body=response.read())
    finally:
        connection.close()


@pytest.fixture(scope="session")
def get():
    return ask


@pytest.fixture(scope="session")
def find_url(web):
    """`find_url(path)` is the address of the first site that has that path."""

    def find(path):
        return next(site.url(path) for site in web.web.sites.values() if path in site.pages)

    return find
