"""Files with keys and passwords, which only their owner may read."""

import os
from pathlib import Path

from tamias.model.errors import ConfigError


def read_private_file(name: str | Path, what: str, most: int) -> bytes:
    """Return so many bytes of a file at most. Raises `ConfigError` if others can read it, or nobody."""
    file = Path(name).expanduser()
    try:
        with file.open("rb") as content:
            if os.fstat(content.fileno()).st_mode & 0o077:
                raise ConfigError(f"others can read the {what} {file}; run 'chmod 600 {file}'")
            return content.read(most)
    except OSError as error:
        raise ConfigError(f"cannot read the {what} {file}: {error.strerror}") from None
