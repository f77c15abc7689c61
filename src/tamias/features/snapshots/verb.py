"""`tamias snapshot`: the corpus as it was at a time, under a name, to be cited and exported again."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from tamias.access import audited
from tamias.archive.moments import milliseconds, rfc3339
from tamias.cli.console.options import CommonOptions, archive_at, common, print_result, say, say_json
from tamias.cli.console.output import to_output
from tamias.model.errors import TamiasError, UsageError

if TYPE_CHECKING:
    from tamias.features.snapshots.entries import ManifestEntry
    from tamias.features.snapshots.rows import CorpusSnapshot

PACKAGES = ("bagit", "ro-crate")
MOST_LINES = 20


class _NameFirst(click.Group):
    """`tamias snapshot NAME` makes one: a word that is no action is a name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and not ctx.resilient_parsing and "--help" not in args[:1]:
            args = ["make", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_NameFirst)
def command() -> None:
    """Freezes the corpus as it was at a time, under a name; lists, shows and exports snapshots.

    `tamias snapshot NAME` is `tamias snapshot make NAME`.

    Example: tamias snapshot 2026-q4 --at 2026-12-31
    """


@command.command()
@click.argument("name")
@click.option("--at", metavar="TIME", help="The state of this time: RFC 3339 or a date. [now]")
@click.option(
    "--latest", is_flag=True, help="Only the version of each resource that was current. [all until then]"
)
@click.option(
    "--url", "urls", multiple=True, metavar="URL", help="Only this resource or document. May be repeated."
)
@click.option("--host", "hosts", multiple=True, metavar="HOST", help="Only this host. May be repeated.")
@click.option(
    "--portal", "portals", multiple=True, metavar="URL", help="Only what this portal lists. May be repeated."
)
@click.option("--title", help="What it is called. [Snapshot NAME]")
@click.option("--description", help="What is in it. [how much of what]")
@click.option(
    "--creator", "creators", multiple=True, metavar="NAME", help="Who made it. May be repeated. [publisher]"
)
@click.option("--publisher", metavar="NAME", help="Who publishes it. [Tamias]")
@click.option("--doi", help="Its DOI, if you have reserved one, such as 10.5072/abc.")
@click.option(
    "--license", "licence", metavar="URL", help="The licence of the compilation; its parts have their own."
)
@click.option(
    "--include-reserved",
    "reserved",
    is_flag=True,
    help="Include what servers reserve (TDMRep). Check that you may use it.",
)
@common
def make(
    place: CommonOptions,
    *,
    name: str,
    at: str | None,
    **chosen: Any,
) -> None:
    """Makes a snapshot: versions, graphs and provenance as of a time, with a manifest of digests.

    It never changes. What it names stays until you forget it yourself.

    Example: tamias snapshot 2026-q4 --at 2026-12-31 --creator "City of Exampleton"
    """
    from tamias.features.snapshots.entries import SnapshotAbout
    from tamias.features.snapshots.make import make_snapshot

    if name in command.commands:
        raise UsageError(f"'{name}' is an action of 'tamias snapshot'; choose another name")
    with archive_at(place) as archive:
        when = archive.session.now() if at is None else milliseconds(at)
        chosen |= {each: chosen[each] or "" for each in ("title", "description", "publisher")}
        plan = SnapshotAbout(name=name, at=rfc3339(when), **chosen)
        with audited(archive.session, place.data, "snapshot make", [name]):
            made = make_snapshot(archive, plan, when)
    for reason, count in made.about.left_out.items():
        click.echo(f"left out {count}: {reason}; --include-reserved includes them", err=True)
    _tell(place, made)


@command.command("list")
@common
def list_(place: CommonOptions) -> None:
    """Lists the snapshots, the oldest state first.

    Example: tamias snapshot list
    """
    from tamias.features.snapshots.rows import list_snapshots

    with archive_at(place) as archive:
        found = [each.about for each in list_snapshots(archive.session)]
    lines = (
        f"{each.name:24} {each.at}  {each.versions:>9,} versions  {each.graphs:>9,} graphs"
        f"  sha256:{each.manifest}"
        for each in found
    )
    print_result(place, found, lines)


@command.command()
@click.argument("name")
@click.option("--rdfc", is_flag=True, help="Also the SHA-256 of its graphs by RDFC-1.0.")
@common
def show(place: CommonOptions, name: str, *, rdfc: bool) -> None:
    """Shows a snapshot: what is in it, how to cite it, and what was removed since. --json has it all.

    Example: tamias snapshot show 2026-q4
    """
    from tamias.features.snapshots.export import SnapshotExport
    from tamias.features.snapshots.rows import find_snapshot

    with archive_at(place) as archive, TemporaryDirectory(prefix="tamias-snapshot-") as folder:
        found = find_snapshot(archive.session, name)
        reading = SnapshotExport(archive, found, Path(folder))
        reading.read(graphs=rdfc)
        digest = reading.canonical_digest() if rdfc else None
    _tell(place, found, reading.gaps, digest)


@command.command()
@click.argument("name")
@common
def remove(place: CommonOptions, name: str) -> None:
    """Removes a snapshot. The versions and graphs that it names stay where they are.

    Example: tamias snapshot remove trial
    """
    from tamias.features.snapshots.rows import remove_snapshot

    with archive_at(place) as archive, audited(archive.session, place.data, "snapshot remove", [name]):
        remove_snapshot(archive.session, name)


@command.command()
@click.argument("name")
@click.option(
    "--format",
    "form",
    type=click.Choice(("nquads", *PACKAGES, "manifest")),
    default="nquads",
    show_default=True,
    help="Output format.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="File to write; for bagit and ro-crate a folder, unless it ends in .zip. [stdout]",
)
@common
def export(place: CommonOptions, name: str, form: str, output: Path | None) -> None:
    """Writes a snapshot: the same bytes every time, on every machine.

    What was removed from the archive since is a gap: the manifest and stderr say so.

    Example: tamias snapshot export 2026-q4 --format bagit -o 2026-q4.zip
    """
    from tamias.features.exports.packages import write_package
    from tamias.features.snapshots.export import SnapshotExport
    from tamias.features.snapshots.rows import find_snapshot

    with archive_at(place) as archive, TemporaryDirectory(prefix="tamias-snapshot-") as folder:
        reading = SnapshotExport(archive, find_snapshot(archive.session, name), Path(folder))
        reading.read(graphs=form != "manifest")
        if form in PACKAGES:
            fill = reading.write_bag if form == "bagit" else reading.write_crate
            write_package(fill, output, name if form == "bagit" else "", reading.at)
        else:
            write = reading.write_nquads if form == "nquads" else reading.write_manifest
            to_output(write, output)
    _tell_gaps(reading.gaps)
    if damaged := sum(bool(each.gap and each.gap.damaged) for each in reading.gaps):
        raise TamiasError(f"{damaged} graphs are not in the export, because they cannot be read; the rest is")


def _tell(
    place: CommonOptions,
    snapshot: "CorpusSnapshot",
    missing: "list[ManifestEntry] | None" = None,
    rdfc: str | None = None,
) -> None:
    from tamias.features.snapshots.datacite import citation

    about = snapshot.about
    if place.json:
        import msgspec

        say_json(
            {
                **msgspec.to_builtins(about),
                "citation": citation(about),
                "licences": msgspec.Raw(snapshot.licences.encode()),
                "datacite": msgspec.Raw(snapshot.datacite.encode()),
                "gaps": missing or [],
                **({"rdfc_1_0": rdfc} if rdfc else {}),
            }
        )
        return
    say(f"{about.name}: {about.title}, as of {about.at}")
    say(f"versions    {about.versions:,} of {about.resources:,} resources, {about.version_bytes:,} bytes")
    say(f"graphs      {about.graphs:,} with {about.statements:,} statements")
    say(f"manifest    sha256:{about.manifest}")
    if rdfc is not None:
        say(f"rdfc-1.0    sha256:{rdfc}")
    say(f"to cite     {citation(about)}")
    _tell_gaps(missing or [])


def _tell_gaps(missing: "list[ManifestEntry]") -> None:
    from tamias.features.snapshots.entries import VersionEntry

    for each in missing[:MOST_LINES]:
        what = (
            f"version {each.id} of {each.url}"
            if isinstance(each, VersionEntry)
            else f"graph of {each.document}"
        )
        click.echo(f"gap: {what}: {each.gap.reason if each.gap else ''}", err=True)
    if len(missing) > MOST_LINES:
        click.echo(f"gap: {len(missing) - MOST_LINES} more; --format manifest lists all", err=True)
