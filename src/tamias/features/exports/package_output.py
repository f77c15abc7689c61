"""A package as a result of a command: a folder, or a zip file."""

import zipfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from tamias.cli.console.output import to_folder, to_output
from tamias.features.exports.packages import FolderPackage, Package, ZipPackage


def write_package(
    fill: Callable[[Package], Any], output: Path | None, folder: str, at: datetime | None = None
) -> None:
    """Write a package to a new folder, or as a zip if the name ends so or none is given.

    In a zip a bag stands in a `folder` of its name; the description of a crate is at the top.
    """

    def write(out: BinaryIO) -> None:
        with zipfile.ZipFile(out, "w") as zipped:
            fill(ZipPackage(zipped, folder, at))

    if output is not None and output.suffix != ".zip":
        to_folder(lambda path: fill(FolderPackage(path)), output)
    else:
        to_output(write, output)
