"""`tamias read`: what the crawler would see in one file or URL."""

import os
import sys
from collections.abc import Iterable

import click
from pyoxigraph import Quad, RdfFormat, serialize

from tamias.cli.common import Place, common, say, say_json

FORMATS = {
    "nquads": RdfFormat.N_QUADS,
    "turtle": RdfFormat.TURTLE,
    "trig": RdfFormat.TRIG,
    "jsonld": RdfFormat.JSON_LD,
}


@click.command()
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option("--base", help="What relative references are relative to.")
@click.option("--type", "media_type", metavar="MEDIA_TYPE", help="Take the source for this type.")
@click.option("--links", is_flag=True, help="Print the addresses it refers to instead of its quads.")
@click.option("--problems", is_flag=True, help="Print what could not be read instead of its quads.")
@click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMATS)),
    default="nquads",
    show_default=True,
    help="How to print.",
)
@click.option("--allow-private", is_flag=True, help="Private and loopback addresses may be fetched.")
@common
def command(  # noqa: PLR0917 (click passes them by name)
    place: Place,
    sources: tuple[str, ...],
    base: str | None,
    media_type: str | None,
    links: bool,
    problems: bool,
    form: str,
    allow_private: bool,
) -> int:
    """Opens and analyses files or URLs as the crawler would and prints their quads. No database is started.

    Example: tamias read page.html --links
    """
    if allow_private:
        os.environ["TAMIAS_PERMIT__ALLOW_PRIVATE"] = "true"
    from tamias.crawl.reading import read

    bad = 0
    for source in sources:
        reading = read(source, base=base, media_type=media_type)
        if place.json:
            say_json(
                {
                    "source": source,
                    "media_type": reading.media_type,
                    "quads": [str(q) for q in reading.quads],
                    "links": reading.links,
                    "problems": reading.problems,
                }
            )
        elif links:
            for link in reading.links:
                say(link)
        elif not problems:
            _print(reading.quads, form)
        for problem in reading.problems:
            at = "" if problem.line is None else f" line {problem.line}"
            click.echo(f"{source}{at}: {problem.what}", err=not problems)
        bad += bool(reading.problems and reading.media_type is None)
    return 1 if bad else 0


def _print(quads: Iterable[Quad], form: str) -> None:
    statements = (quad.triple for quad in quads) if form == "turtle" else quads
    serialize(statements, sys.stdout.buffer, format=FORMATS[form])
    sys.stdout.buffer.flush()
