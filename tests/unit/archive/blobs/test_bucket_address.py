"""Addresses of stores, and what they take from the environment."""

import pytest

from tamias.archive.blobs.objects import open_bucket
from tamias.model.errors import ConfigError

KEYS = {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "hush"}


def test_a_secret_is_never_shown():
    assert "hush" not in repr(open_bucket("s3://archive", KEYS))


def test_an_address_takes_the_rest_from_the_environment():
    found = open_bucket("s3://archive/blobs/", KEYS | {"AWS_ENDPOINT_URL": "http://store:9000/"})
    assert (found.config["endpoint"], found.config["bucket"], found.prefix) == (
        "http://store:9000", "archive", "blobs"
    )  # fmt: skip


def test_without_an_endpoint_it_is_that_of_the_region():
    found = open_bucket("s3://archive", KEYS | {"AWS_REGION": "eu-west-1"})
    assert found.config["endpoint"] == "https://s3.eu-west-1.amazonaws.com"


@pytest.mark.parametrize("url", ["http://archive", "s3://", "s3://archive?region=x"])
def test_what_is_no_address_of_a_store_is_refused(url):
    with pytest.raises(ConfigError, match="s3://bucket"):
        open_bucket(url, KEYS)


def test_a_missing_key_is_named():
    with pytest.raises(ConfigError, match="AWS_SECRET_ACCESS_KEY"):
        open_bucket("s3://archive", {"AWS_ACCESS_KEY_ID": "me"})
