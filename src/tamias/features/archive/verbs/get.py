"""`tamias get`: one version, byte for byte."""

from pathlib import Path

import click

from tamias.cli.console.options import CommonOptions, archive_at, common, say_json
from tamias.cli.console.output import to_output
from tamias.model.errors import UsageError


@click.command()
@click.argument("url")
@click.option("--at", metavar="TIME", help="The version that was current then: RFC 3339 or YYYYMMDDhhmmss.")
@click.option(
    "--version", "number", type=click.IntRange(min=1), metavar="N", help="The version of this number."
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write. [stdout]")
@common
def command(place: CommonOptions, url: str, at: str | None, number: int | None, output: Path | None) -> None:
    """Writes a version exactly as it was captured: the current one, or the one you select.

    Example: tamias get https://example.org/data.csv --at 2026-11-15T12:00:00Z -o data.csv
    """
    from tamias.archive.reader.library import redirect_of
    from tamias.features.archive.descriptions import describe_version

    if place.json and output is None:
        raise UsageError("with --json, name a file for the content: -o FILE")
    with archive_at(place) as archive:
        content = archive.get(url, at=at, version=number)
        to_output(lambda out: out.writelines(content.pieces()), output)
        if target := redirect_of(archive, content, url):
            click.echo(f"tamias: {url} redirects to {target}; this is what is there", err=True)
        if place.json:
            say_json(describe_version(content.version))
