"""`tamias versions`: the history of one resource."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from tamias.cli.console.options import CommonOptions, archive_at, common, print_result, say, say_json
from tamias.plugins import notes_of

if TYPE_CHECKING:
    from tamias.features.archive.descriptions import SameContent
    from tamias.model.resource import Version


@click.command()
@click.argument("url")
@click.option(
    "--suspicious", is_flag=True, help="List suspicious responses, which are stored but not versions."
)
@common
def command(place: CommonOptions, url: str, *, suspicious: bool) -> None:
    """Lists the versions of a resource, oldest first. URL can also be the id of the resource.

    Example: tamias versions https://example.org/data.csv --json
    """
    from tamias.archive.versions.resources import page_of_suspects
    from tamias.features.archive.descriptions import describe_suspect, describe_version, same_content

    with archive_at(place) as archive:
        resource = archive.resource(url)
        versions = archive.versions(resource.id)
        suspects = page_of_suspects(archive.session, resource.id)[::-1] if suspicious else []
        same = {} if suspicious else same_content(archive.session, versions)
        notes = notes_of(archive.session, resource.id)
    if suspicious:
        found = [describe_suspect(each) for each in suspects]
        lines = (
            f"{each.captured_at}  {each.byte_size:>14,}  {each.media_type or '?'}  {each.suspicious}"
            for each in found
        )
        print_result(place, found, [f"{resource.url} ({resource.state})", *lines])
        return
    if place.json:
        say_json(
            [
                describe_version(
                    version, same_as=same.get(version.id, ()), notes=notes.get(version.number, ())
                )
                for version in versions
            ]
        )
        return
    say(f"{resource.url} ({resource.state})")
    for version in versions:
        _say_version(version, same.get(version.id, ()), notes.get(version.number, ()))
    if not versions:
        say("no version yet; 'tamias list' shows whether it was visited, and what came of it")


def _say_version(version: "Version", same: Sequence["SameContent"], notes: Sequence[str]) -> None:
    from tamias.archive.moments import rfc3339

    say(
        f"{version.number:>5}  {rfc3339(version.captured_at)}  {version.byte_size:>14,}  "
        f"{version.media_type or '?'}  sha256:{version.sha256}"
    )
    if version.noise is not None:
        say(f"       the same content: {version.noise}")
    if version.suspicious is not None:
        say(f"       suspicious, accepted because it stayed: {version.suspicious}")
    for note in notes:
        say(f"       {note}")
    for other in same:
        what = "the same bytes as" if other.same_bytes else "the same content as"
        say(f"       {what} version {other.number} of {other.url}")
