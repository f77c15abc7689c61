"""`tamias check`: looks at every stored byte and every reference."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tamias import plugins
from tamias.cli.console.options import CommonOptions, common, say, say_json

if TYPE_CHECKING:
    from tamias.archive.blobs.collect import FreedSpace
    from tamias.database.connect import Database
    from tamias.features.check.checkup import CheckFault, Checkup


@click.command()
@click.option(
    "--repair", is_flag=True, help="Repair what can be repaired, and free blobs that no version needs."
)
@click.option(
    "--from",
    "copies",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="FOLDER",
    help="With --repair: take lost bodies from the files in this folder, whatever their names.",
)
@click.option("--rebuild", is_flag=True, help="Rebuild the catalogue of the SPARQL endpoint.")
@common
def command(place: CommonOptions, repair: bool, copies: Path | None, rebuild: bool) -> int:
    """Reads blobs, versions, segments, records and WARC files to the last byte and reports what is damaged.

    Exits with 1 if damage is left; then `--repair` says which copies would repair it.

    Example: tamias check --repair
    """
    from tamias.crawl.verbs.check import finish_interrupted
    from tamias.database.connect import Database
    from tamias.features.check.checkup import Checkup

    with (
        closing(Database(place.data, place.db, create=False)) as database,
        closing(Checkup(database, place.data)) as checkup,
    ):
        if place.db:
            checkup.refuse_other_folder()
        if repair:
            # What is half forgotten would look damaged, or be mended.
            finish_interrupted(database, place.data, place.settings().settings)
        faults, freed = _checked(place, checkup, repair, copies)
        left = [fault for fault in faults if not fault.mended]
        if rebuild:
            _rebuild(place, database)
        if place.json:
            say_json({"ok": not left, "looked": checkup.looked, "faults": faults, "freed": freed})
        else:
            _tell(checkup, faults, left, freed)
    return 1 if left else 0


def _rebuild(place: CommonOptions, database: "Database") -> None:
    for name, rebuild in plugins.load_all("rebuilds").items():
        documents = rebuild(database, place.data, place.settings().settings)
        if not place.json:
            say(f"rebuilt   the {name}, with {documents:,} crawled documents")


def _checked(
    place: CommonOptions, checkup: "Checkup", repair: bool, copies: Path | None
) -> tuple[list["CheckFault"], "FreedSpace | None"]:
    faults = []
    for fault in checkup.faults():
        faults.append(fault)
        if not place.json:
            _tell_fault(fault)
    if not repair:
        return faults, None
    faults = list(checkup.repaired(faults, copies))
    # While something is broken, what looks useless may be what it can be mended from.
    return faults, checkup.collected() if all(fault.mended for fault in faults) else None


def _tell_fault(fault: "CheckFault") -> None:
    say(f"BAD  {fault.kind} {fault.name}: {fault.problem}")
    for holder in fault.versions:
        say(f"     lost with it: {holder.version} of {holder.url}")
    for document in fault.documents:
        say(f"     lost with it: the statements of {document}")


def _tell_needs(left: list["CheckFault"]) -> None:
    needs = {need.sha256: need for fault in left for need in fault.needs}
    for need in needs.values():
        size = "" if need.byte_size is None else f", {need.byte_size:,} bytes"
        said = ", ".join(f"{holder.version} of {holder.url}" for holder in need.versions)
        say(f"needed    a file with SHA-256 {need.sha256}{size}: {said or 'no version has it'}")
    if needs:
        say("          Put the files in a folder and run 'tamias check --repair --from FOLDER'.")
        say("          'tamias get' writes them, on a copy of this archive or on a restored backup.")


def _tell(
    checkup: "Checkup", faults: list["CheckFault"], left: list["CheckFault"], freed: "FreedSpace | None"
) -> None:
    looked = checkup.looked
    say(f"blobs     {looked.blobs:,} of {looked.blob_bytes:,} bytes")
    say(f"segments  {looked.segments:,} of {looked.segment_bytes:,} bytes")
    if looked.warc_files:
        say(f"warc      {looked.warc_files:,} of {looked.warc_bytes:,} bytes")
    for fault in faults:
        if fault.mended:
            say(f"repaired  {fault.kind} {fault.name}")
        if fault.due:
            say(f"due       {fault.due:,} URLs of {fault.name}: the next crawl fetches them again")
    _tell_needs(left)
    if freed is not None:
        say(f"freed     {freed.bytes:,} bytes, {freed.blobs:,} blobs")
    say("nothing is damaged" if not left else f"{len(left)} damaged")
