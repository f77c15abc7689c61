"""The REST API as its clients meet it."""

from urllib.parse import quote

from .conftest import CSV
