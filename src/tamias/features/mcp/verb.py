"""`tamias mcp`: the archive for an assistant, over standard input and output."""

import sys
from contextlib import closing

import click

from tamias.cli.console.options import CommonOptions, common


@click.command()
@common
def command(place: CommonOptions) -> None:
    """Serves the Model Context Protocol on stdin and stdout: tools that search, compare and read.

    An assistant starts this command; put it into the assistant's configuration.

    Example: tamias mcp --data ./tamias-data
    """
    from tamias.features.mcp.stdio import LazyArchive, converse

    with closing(LazyArchive(place.data, place.db, place.settings().settings)) as reading:
        converse(reading, sys.stdin.buffer, sys.stdout.buffer)
