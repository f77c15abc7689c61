"""A seed list in a file: one URL a line, or CSV with a `uri` header."""

import csv
from collections.abc import Iterator
from pathlib import Path

from tamias.model.errors import UsageError
from tamias.model.url import fetch_url

_LONGEST_LINE = 65536


class ListSeeds:
    """Carries out `protocols.SeedSource` for a file; blank lines and `#` comments are skipped."""

    def addresses(self, argument: str) -> Iterator[str]:
        try:
            with Path(argument).open(encoding="utf-8-sig", newline="") as file:
                yield from self._read(argument, file)
        except OSError as error:
            raise UsageError(f"cannot read the seed file {argument}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise UsageError(f"the seed file {argument} is not UTF-8 text: {error.reason}") from error

    def _read(self, name: str, lines: Iterator[str]) -> Iterator[str]:
        column: int | None = None
        for number, line in enumerate(lines, start=1):
            if len(line) > _LONGEST_LINE:
                raise UsageError(f"{name} line {number} is longer than {_LONGEST_LINE} characters")
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            cells = next(csv.reader([text]))
            if number == 1 and column is None and "uri" in [cell.strip().lower() for cell in cells]:
                column = [cell.strip().lower() for cell in cells].index("uri")
                continue
            address = text if column is None else (cells[column].strip() if column < len(cells) else "")
            yield _checked(address, name, number)


def _checked(address: str, name: str, number: int) -> str:
    try:
        fetch_url(address)
    except ValueError as error:
        raise UsageError(f"{name} line {number}: {error}") from error
    return address
