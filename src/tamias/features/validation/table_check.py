"""A program of its own: checks a table against its schema, within walls, and says on stdout what it found."""

import json
import os
import re
import resource
import sys
import tempfile
import warnings
from collections import deque
from itertools import islice
from types import SimpleNamespace
from typing import Any

import msgspec

TABLE = "table.csv"
NOT_CHECKED = "not checked: "
DESCRIPTION = "description.json"
_PLACE = re.compile(
    r"[^:]*:(?P<row>[0-9]+)(?::[0-9]+ (?P<column>.*?))?(?::|(?= duplicate))\s*(?P<text>.*)", re.DOTALL
)
_COLUMN = re.compile(r'Unspecified column "(?P<column>.*)" in table')


class CheckOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The kind of schema to check by, and the limits."""

    kind: str
    encoding: str
    seconds: int
    """Of processor time."""
    memory: int = 2 << 30
    """Of addresses."""
    rows: int = 1_000_000
    faults: int = 20


class SchemaFault(msgspec.Struct, frozen=True, omit_defaults=True):
    """A fault of a table: its schema does not allow this."""

    text: str
    column: str | None = None
    row: int | None = None
    """As lines of the file are counted: the header is the first."""


def main() -> None:
    """Carry out the order in the first argument, in the folder for temporary files."""
    from tamias.crawl.sandbox.walls import CALLS, NETWORK, build_walls
    from tamias.settings import SandboxSettings

    order = msgspec.json.decode(sys.argv[1], type=CheckOrder)
    check = _check_csvw if order.kind == "csvw" else _check_frictionless
    resource.setrlimit(resource.RLIMIT_CPU, (order.seconds, order.seconds + 1))
    missing = build_walls(msgspec.structs.replace(SandboxSettings(), memory=order.memory), 1 << 20)
    os.chdir(tempfile.gettempdir())
    # A schema may name others by URL: only the gate of the crawl makes requests.
    is_open = {CALLS, NETWORK} <= {*missing}
    alone = "this system has no sandbox without network ('tamias doctor' says why)"
    found = [SchemaFault(f"{NOT_CHECKED}{alone}")] if is_open else check(order)
    sys.stdout.buffer.write(msgspec.json.encode(found))
    sys.stdout.flush()
    os._exit(0)


def _check_frictionless(order: CheckOrder) -> list[SchemaFault]:
    from frictionless import FrictionlessException, Resource

    with open(DESCRIPTION, "rb") as file:
        description: dict[str, Any] = json.load(file)
    description["schema"].pop("foreignKeys", None)  # the other tables are not here
    known: dict[str, Any] = {name: description[name] for name in ("schema", "dialect") if name in description}
    try:
        table = Resource.from_descriptor(
            {
                "name": "table",
                "path": TABLE,
                "scheme": "file",
                "format": "csv",
                "encoding": order.encoding,
                **known,
            }
        )
        report = table.validate(limit_rows=order.rows, limit_errors=order.faults)
    except FrictionlessException as error:
        return [SchemaFault(f"{NOT_CHECKED}{error.error.message}")]
    found = [each for task in report.tasks for each in task.errors] or report.errors
    return [
        SchemaFault(
            each.note or each.message,
            getattr(each, "field_name", None) or None,
            getattr(each, "row_number", None),
        )
        for each in found
    ]


def _check_csvw(order: CheckOrder) -> list[SchemaFault]:
    from csvw import TableGroup

    texts: list[str] = []
    log = SimpleNamespace(warning=lambda text: texts.append(text) if len(texts) < order.faults else None)
    with open(DESCRIPTION, "rb") as file:
        description = json.load(file)
    declared = description.get("dialect")
    dialect = {"encoding": order.encoding, **(declared if isinstance(declared, dict) else {})}
    context = description.pop("@context", None)
    group = {"@context": context, "tables": [{**description, "url": TABLE, "dialect": dialect}]}
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            table = TableGroup.fromvalue(group).tables[0]
            deque(islice(table.iterdicts(log=log, with_metadata=True, fname=TABLE), order.rows), maxlen=0)
            table.check_primary_key(log=log)
        except ValueError as error:
            texts.append(str(error))
        except (LookupError, TypeError, AttributeError) as error:
            return [SchemaFault(f"{NOT_CHECKED}its schema is not as CSVW wants it: {error}")]
    unknown = dict.fromkeys(str(each.message) for each in warned)
    return [_csvw_fault(text) for text in [*unknown, *texts][: order.faults]]


def _csvw_fault(text: str) -> SchemaFault:
    if unknown := _COLUMN.match(text):
        return SchemaFault("the schema has no such column", unknown["column"])
    found = _PLACE.fullmatch(text)
    return (
        SchemaFault(found["text"], found["column"], int(found["row"]))
        if found
        else SchemaFault(text.replace(TABLE, "it"))
    )


if __name__ == "__main__":
    main()
