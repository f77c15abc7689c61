"""`tamias read`: what the crawler would see in one file or URL."""

import sys
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

import click
from pyoxigraph import Quad, serialize

from tamias.cli.console.options import CommonOptions, common, printable, say, say_json, session_at
from tamias.content.formats import FORMATS, JSON_LD, NQUADS, TRIG, TURTLE, syntax_of
from tamias.crawl.verbs.read import Reading, read_with
from tamias.sinks.segments.naming import sound

if TYPE_CHECKING:
    from tamias.model.site import SemanticDataset
    from tamias.settings import Settings

BATCH = 1000

WRITTEN = {FORMATS[kind].writer or kind: syntax_of(kind) for kind in (NQUADS, TURTLE, TRIG, JSON_LD)}


@click.command()
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option("--base", help="Base IRI for relative references.")
@click.option("--type", "media_type", metavar="MEDIA_TYPE", help="Read the source as this type.")
@click.option("--links", is_flag=True, help="Print its links instead of its quads.")
@click.option("--problems", is_flag=True, help="Print its problems instead of its quads.")
@click.option(
    "--format",
    "form",
    type=click.Choice(list(WRITTEN)),
    default="nquads",
    show_default=True,
    help="Output format.",
)
@click.option(
    "--one",
    is_flag=True,
    help="SOURCE is an IRI: print what is said about it, by the cheapest way its publisher declares.",
)
@click.option("--rules", multiple=True, type=click.Path(), help="Scraping rules for pages.")
@click.option("--allow-private", is_flag=True, help="Allow private and loopback addresses.")
@common
def command(  # noqa: PLR0917 (click passes them by name)
    place: CommonOptions,
    sources: tuple[str, ...],
    base: str | None,
    media_type: str | None,
    links: bool,
    problems: bool,
    form: str,
    rules: tuple[str, ...],
    allow_private: bool,
    one: bool,
) -> int:
    """Opens and analyses files or URLs as the crawler would and prints their quads. No database is started.

    Example: tamias read page.html --links
    """
    settings = place.settings(
        permit__allow_private=allow_private or None, analyse__rules=rules or None
    ).settings
    if one:
        return max(_read_one(place, settings, iri, form) for iri in sources)
    bad = 0
    for source in sources:
        reading = read_with(settings, source, base=base, media_type=media_type)
        if place.json:
            say_json(_as_json(source, reading))
        elif links:
            for link in reading.links:
                say(link)
        elif not problems:
            _print(reading.quads, form)
        _tell_problems(source, reading, to_stdout=problems)
        bad += bool(reading.problems and reading.media_type is None)
    return 1 if bad else 0


def _read_one(place: CommonOptions, settings: "Settings", iri: str, form: str) -> int:
    """Read an IRI with what is declared in the data directory, or else by its own site."""
    from tamias.crawl.verbs.read import read_one

    found = read_one(settings, iri, _declared(place, iri))
    if place.json:
        say_json({"iri": iri, "quads": [str(quad) for quad in found.quads], "tried": found.tried})
    else:
        _print(iter(found.quads), form)
    for each in found.tried:
        became = f"{each.statements:,} statements" if each.statements else f"nothing: {each.problem}"
        click.echo(printable(f"{each.kind} {each.url}: {each.why}; {became}"), err=True)
    return 0 if found.quads else 1


def _declared(place: CommonOptions, iri: str) -> "list[tuple[SemanticDataset, frozenset[str]]] | None":
    from tamias.archive.sources.declared import declared_datasets

    if not (place.db or (place.data / "pg").is_dir()):
        return None
    with session_at(place) as session:
        found = [(each.dataset, each.confirmed) for each in declared_datasets(session, iri)]
    return found or None


def _as_json(source: str, reading: Reading) -> dict[str, object]:
    return {
        "source": source,
        "media_type": reading.media_type,
        "quads": [str(quad) for quad in reading.quads],
        "links": reading.links,
        "problems": reading.problems,
    }


def _tell_problems(source: str, reading: Reading, *, to_stdout: bool) -> None:
    for problem in reading.problems:
        at = "" if problem.line is None else f" line {problem.line}"
        advice = "" if reading.media_type else _advice(problem.what)
        click.echo(printable(f"{source}{at}: {problem.what}{advice}"), err=not to_stdout)


def _advice(reason: str) -> str:
    """Return the option of this verb that lifts a refusal."""
    from tamias.crawl.store.progress import kind_of_reason

    _, advice = kind_of_reason(reason)
    return f"; {advice}" if "--allow-private" in advice else ""


def _print(quads: Iterator[Quad], form: str) -> None:
    statements = _sound(quads)
    triples = (quad.triple for quad in statements) if form == "turtle" else statements
    serialize(triples, sys.stdout.buffer, format=WRITTEN[form])
    sys.stdout.buffer.flush()


def _sound(quads: Iterator[Quad]) -> Iterator[Quad]:
    """Yield the quads without those that would print as something else."""
    while batch := list(islice(quads, BATCH)):
        yield from sound(batch)
