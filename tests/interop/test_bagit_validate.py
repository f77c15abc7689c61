"""Bags written here are valid to the package `bagit` of the Library of Congress, and broken ones are not."""

import pytest

from tamias.features.exports.packages import Bag, FolderPackage

bagit = pytest.importorskip("bagit", reason="the package bagit is not installed")


@pytest.fixture
def folder(tmp_path):
    bag = Bag(FolderPackage(tmp_path / "bag"))
    bag.add("a/1.csv", [b"id\n", b"1\n"])
    bag.add("a/2.bin", [])
    bag.complete(
        [
            ("External-Identifier", "http://example.org/" + "long" * 50),
            ("External-Description", "größer, and much longer than one line of a tag file should be: " * 3),
        ]
    )
    return tmp_path / "bag"


def test_a_bag_is_valid(folder):
    bag = bagit.Bag(str(folder))
    bag.validate()
    assert bag.version_info == (1, 0)
    assert bag.info["Payload-Oxum"] == "5.2"


def test_a_broken_bag_is_not(folder):
    (folder / "data" / "a" / "1.csv").write_bytes(b"id\n2\n")
    with pytest.raises(bagit.BagValidationError):
        bagit.Bag(str(folder)).validate()
