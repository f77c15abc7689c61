"""The executable `tamias`: finds the verb, and turns every error into one sentence and an exit code."""

import difflib
import errno
import gc
import os
import sys
from typing import NoReturn

import click

from tamias import __version__
from tamias.core import CORE
from tamias.model.errors import DiskFull, TamiasError
from tamias.model.process import end_process, open_missing_streams
from tamias.plugins import load_target, parts, verbs

_COLLECTED_AFTER = 20_000
"""Objects made and not yet dropped: most are modules, and with Python's 700 a quarter of the start of a crawl
was spent on looking at them."""


# A click message ends in these names: 'two' is not a valid whole number.
click.IntRange.name = "whole number"
click.FloatRange.name = "number"


class Verbs(click.Group):
    """Loads a verb's module only when it is asked for, so that `tamias --help` stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(verbs())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        # Other packages are not looked at for a verb of the core.
        verb = CORE.verbs.get(cmd_name) or verbs().get(cmd_name)
        if verb is None:
            return None
        command = load_target(verb.target)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in CORE.verbs and args[0] not in verbs():
            alike = difflib.get_close_matches(args[0], verbs(), n=1)
            hint = f"Did you mean '{alike[0]}'?" if alike else "'tamias --help' lists them."
            ctx.fail(f"No such command '{args[0]}'. {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(name, verb.about) for name, verb in verbs().items()])


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="tamias")
def cli() -> None:
    """Tamias crawls the Web of Data and keeps what it finds.

    Example: tamias crawl https://example.org/data.ttl --depth 1
    """


def main() -> NoReturn:
    """Runs a verb and ends the process with its documented code."""
    open_missing_streams()
    gc.set_threshold(_COLLECTED_AFTER)
    try:
        run(cli, "tamias")
    except SystemExit as end:
        end_process(end.code if isinstance(end.code, int) else 1)


def run(command: click.Command, name: str) -> NoReturn:
    """Runs a command and ends the process with the documented code of what it returned or raised."""
    try:
        code = command.main(prog_name=name, standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        if isinstance(error, click.NoSuchOption):
            sink = error.option_name[2:]
            if sink in {*parts("graph_sinks"), *parts("crawl_sinks")}:
                error = click.NoSuchOption(error.option_name, None, [f"--sink {sink}"], error.ctx)
        error.show()
        sys.exit(error.exit_code)
    except TamiasError as error:
        click.echo(f"{name}: {error}", err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        sys.exit(_tell_failure_of_a_file(name, error))
    sys.exit(code if isinstance(code, int) else 0)


def _tell_failure_of_a_file(name: str, error: OSError) -> int:
    """Print a sentence about a file that cannot be used and return the exit code. Raises other errors."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    if not full and error.filename is None:
        raise error
    where = "" if error.filename is None else f": {os.fsdecode(error.filename)}"
    advice = "; free some space, then run the same command again" if full else ""
    click.echo(f"{name}: {error.strerror}{where}{advice}", err=True)
    return DiskFull.exit_code if full else TamiasError.exit_code
