"""`tamias key`: the key that signs requests."""

from pathlib import Path

import click

from tamias.cli.console.options import CommonOptions, common, say, say_json


@click.command()
@click.argument("action", type=click.Choice(["make", "show"]))
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@common
def command(place: CommonOptions, action: str, file: Path) -> None:
    """Makes a key that signs requests, or shows its directory, which sites need to verify them.

    Set signatures.key to FILE, and signatures.agent to the site that serves the directory.

    Example: tamias key make crawler.pem
    """
    from tamias.features.signatures.keys import DIRECTORY_PATH, make_key, read_key

    key = make_key(file) if action == "make" else read_key(file)
    if place.json or action == "show":
        say_json({"keys": [key.public]})
        return
    say(f"wrote {file}; its public key has the identifier {key.public.kid}")
    say(f'set signatures.key = "{file.absolute()}" and signatures.agent = "https://YOUR-SITE"')
    say(f"'tamias serve' serves the directory at {DIRECTORY_PATH}; 'tamias key show {file}' prints it")
