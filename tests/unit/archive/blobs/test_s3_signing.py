"""Signatures are those that the inventor of the method publishes as examples."""

from datetime import UTC, datetime

import pytest

from tamias.archive.blobs.s3 import S3Credentials, S3Request, s3_address, signed
from tamias.model.errors import ConfigError

CREDENTIALS = S3Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
MOMENT = datetime(2013, 5, 24, tzinfo=UTC)
HOST = "examplebucket.s3.amazonaws.com"
KEYS = {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "hush"}


def signature(**asked):
    return signed(S3Request(host=HOST, **asked), CREDENTIALS, MOMENT)["authorization"].rpartition(
        "Signature="
    )[2]


def test_a_read_of_a_range_is_signed_as_in_the_documentation():
    found = signature(method="GET", path="/test.txt", headers={"Range": "bytes=0-9"})
    assert found == "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"


def test_a_write_is_signed_as_in_the_documentation():
    found = signature(
        method="PUT",
        path="/test%24file.text",
        headers={"date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"},
        sha256="44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
    )
    assert found == "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"


def test_a_list_is_signed_as_in_the_documentation():
    found = signature(method="GET", path="/", query={"max-keys": "2", "prefix": "J"})
    assert found == "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"


def test_a_secret_is_never_shown():
    assert "wJalr" not in repr(CREDENTIALS)


def test_an_address_takes_the_rest_from_the_environment():
    found = s3_address("s3://archive/blobs/", KEYS | {"AWS_ENDPOINT_URL": "http://store:9000/"})
    assert (found.endpoint, found.bucket, found.prefix) == ("http://store:9000", "archive", "blobs/")


def test_without_an_endpoint_it_is_that_of_the_region():
    assert s3_address("s3://archive", KEYS | {"AWS_REGION": "eu-west-1"}).endpoint == (
        "https://s3.eu-west-1.amazonaws.com"
    )


@pytest.mark.parametrize("url", ["http://archive", "s3://", "s3://archive?region=x"])
def test_what_is_no_address_of_a_store_is_refused(url):
    with pytest.raises(ConfigError, match="s3://bucket"):
        s3_address(url, KEYS)


def test_a_missing_key_is_named():
    with pytest.raises(ConfigError, match="AWS_SECRET_ACCESS_KEY"):
        s3_address("s3://archive", {"AWS_ACCESS_KEY_ID": "me"})
