"""The WARC files of crawls and versions as such, in one file: of chosen resources only the versions."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import click

from tamias.archive.tombstones import all_tombstones
from tamias.cli.console.options import CommonOptions, archive_at
from tamias.cli.console.output import to_output
from tamias.features.exports.verb import open_gate
from tamias.features.warc.folder import bring_warcs
from tamias.features.warc.warc_files import WarcPart, export_warc, sifted_parts
from tamias.features.warc_exports.version_warcs import version_warcs
from tamias.features.warc_exports.wacz import export_wacz
from tamias.plugins import find

MOST_COUNTED = 100_000


def _export(
    form: str, place: CommonOptions, urls: tuple[str, ...], withheld: tuple[str, ...], output: Path | None
) -> None:
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tamias-warc-")))
        crawled = place.data / "warc" if not urls else scratch / "none"
        more: Iterator[WarcPart] = iter(())
        if urls or place.db or (place.data / "pg").is_dir():
            archive = stack.enter_context(archive_at(place))
            crawled = crawled if urls else bring_warcs(archive.session, place.data)
            gate = stack.enter_context(open_gate(place, archive.session, withheld))
            if gone := len(all_tombstones(archive.session, limit=MOST_COUNTED)):
                click.echo(f"left out: {gone} forgotten; 'tamias forget --list' names them", err=True)
            more = version_warcs(archive, urls, gate, scratch, crawled)
            if not gate.is_open:
                more = chain(sifted_parts(crawled, scratch, gate.holds), more)
                crawled = scratch / "none"

        make_signer = find("package_signers", form)
        sign = make_signer and make_signer(place.settings().settings)

        def write(out: BinaryIO) -> None:
            if form == "warc":
                export_warc(crawled, out, more)
            else:
                export_wacz(crawled, out, title=f"Crawl of {place.data.name}", more=more, sign=sign)

        to_output(write, output)


write_warc = partial(_export, "warc")
write_wacz = partial(_export, "wacz")
