"""Writes the pages of the reference that the code knows best: `python tools/reference.py`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from benchmarks.__main__ import PROGRAM
from benchmarks.__main__ import command as all_benchmarks
from tamias.cli.main import cli
from tamias.features.service.app import all_endpoints
from tamias.features.service.http.endpoints import describe_api
from tamias.plugins import verbs

DOCS = Path(__file__).resolve().parents[1] / "docs"
COMMON = {"--data", "--db", "--config", "--json", "--log", "-q", "-v", "--help"}


def commands() -> str:
    """The page of all verbs."""
    context = click.Context(cli, info_name="tamias")
    lines = ["# Commands", "", "Written from the code: `python tools/reference.py`.", ""]
    for name in verbs():
        command = cli.get_command(context, name)
        assert command is not None
        lines += _command(command, click.Context(command, info_name=name, parent=context))
    lines += ["## For every verb", "", *_options(command, common=True)]
    return "\n".join(lines) + "\n"


def benchmarks() -> str:
    """The page of all benchmarks."""
    lines = ["# Commands of the benchmarks", "", "Written from the code: `python tools/reference.py`.", ""]
    lines += _command(all_benchmarks, click.Context(all_benchmarks, info_name=PROGRAM))
    return "\n".join(lines).rstrip() + "\n"


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from _command(child, click.Context(child, info_name=name, parent=context))
        return
    usage = " ".join(command.collect_usage_pieces(context))
    yield from (f"## {context.command_path}", "", f"`{context.command_path} {usage}`", "")
    for paragraph in (command.help or "").split("\n\n"):
        text = " ".join(paragraph.split())
        example = text.removeprefix("Example: ")
        yield from ([text, ""] if example == text else ["```sh", example, "```", ""])
    yield from _options(command, common=False)


def _options(command: click.Command, *, common: bool) -> Iterator[str]:
    options = [each for each in command.params if isinstance(each, click.Option)]
    shown = [each for each in options if bool(COMMON & set(each.opts)) is common]
    if not shown:
        return
    yield from ("| option | what it does |", "|---|---|")
    for option in shown:
        words = ", ".join(f"`{word}`" for word in (*option.opts, *option.secondary_opts))
        yield f"| {words} | {(option.help or '').replace('|', chr(92) + '|')} |"
    yield ""


def routes() -> str:
    """The page of all routes."""
    described = describe_api(all_endpoints())
    lines = ["# REST", "", "Written from the code; `/openapi.json` of a running service says the same.", ""]
    for path, ways in sorted(described["paths"].items()):
        for method, operation in ways.items():
            if method == "head":
                continue
            lines += _route(method.upper(), path, operation)
            lines += _body(operation, described["components"]["schemas"])
    return "\n".join(lines) + "\n"


def _route(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    yield from (f"## {method} {path}", "", operation.get("summary") or operation.get("description", ""), "")
    parameters = operation.get("parameters", [])
    if parameters:
        yield from ("| parameter | in | what it is |", "|---|---|---|")
        for each in parameters:
            yield f"| `{each['name']}` | {each['in']} | {each.get('description', '')} |"
        yield ""


def _body(operation: dict[str, Any], schemas: dict[str, Any]) -> Iterator[str]:
    """What is to be sent, member by member."""
    content = operation.get("requestBody", {}).get("content", {})
    if "application/json" not in content:
        return
    form = content["application/json"]["schema"]
    is_list = form.get("type") == "array"
    schema = _resolved(form["items"] if is_list else form, schemas)
    if "properties" not in schema:
        return
    yield from (f"Send {'a list of objects' if is_list else 'an object'} as JSON:", "")
    yield from ("| member | type | |", "|---|---|---|")
    for name, told in schema["properties"].items():
        if name in schema.get("required", ()):
            note = "required"
        else:
            note = f"default: `{json.dumps(told['default'])}`" if "default" in told else ""
        yield f"| `{name}` | {_type(told, schemas)} | {note} |"
    yield ""


def _type(told: dict[str, Any], schemas: dict[str, Any]) -> str:
    told = _resolved(told, schemas)
    if "anyOf" in told:
        return " or ".join(_type(each, schemas) for each in told["anyOf"])
    if "enum" in told:
        return ", ".join(f"`{json.dumps(each)}`" for each in told["enum"])
    if told.get("type") == "array":
        return f"list of {_type(told.get('items', {}), schemas)}"
    return str(told.get("type", "any"))


def _resolved(told: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = schemas[told["$ref"].rpartition("/")[2]] if "$ref" in told else told
    return found


if __name__ == "__main__":
    (DOCS / "commands.md").write_text(commands(), encoding="utf-8")
    (DOCS / "benchmarks" / "commands.md").write_text(benchmarks(), encoding="utf-8")
    (DOCS / "rest.md").write_text(routes(), encoding="utf-8")
